// How much of a CPU profile is the plugin's: its own frames, and beside them what they call of Node.js.
import { Session } from 'node:inspector/promises';

const OWN = /\/libs\/debate-space\/dist\/(.+)$/;
const SAMPLE_EVERY_MICROSECONDS = 200;

export async function startProfile() {
  const inspector = new Session();
  inspector.connect();
  await inspector.post('Profiler.enable');
  await inspector.post('Profiler.setSamplingInterval', { interval: SAMPLE_EVERY_MICROSECONDS });
  await inspector.post('Profiler.start');
  return async () => ownShare((await inspector.post('Profiler.stop')).profile);
}

/** Percentages of the samples in which the process was not idle: own frames, the same with what they call, each function. */
function ownShare({ nodes, samples }) {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const owners = new Map(nodes.map(({ id }) => [id, owner(id)]));
  const busy = samples.filter((id) => frames.get(id).functionName !== '(idle)');
  const percent = (count) => (count / busy.length) * 100;
  const counts = new Map();
  for (const name of busy.map((id) => owners.get(id))) counts.set(name, (counts.get(name) ?? 0) + 1);
  counts.delete(undefined);
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  return {
    samples: busy.length,
    own: percent(busy.filter((id) => OWN.test(frames.get(id).url)).length),
    ownAndCalled: percent(sorted.reduce((sum, [, count]) => sum + count, 0)),
    functions: sorted.slice(0, 20).map(([name, count]) => [name, percent(count)]),
  };

  /** The function of the plugin that this one is, or that has called it; `undefined` when the host's code is nearer. */
  function owner(id) {
    for (let at = id; at !== undefined; at = parents.get(at)) {
      const { url, functionName, lineNumber } = frames.get(at);
      if (url === '' || url.startsWith('node:')) continue;
      const path = OWN.exec(url)?.[1];
      return path && `${functionName || '(anonymous)'} ${path}:${lineNumber + 1}`;
    }
    return undefined;
  }
}
