// How much of a CPU profile is the plugin's: its own frames, and beside them what they call of Node.js.
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';

const OWN = /\/libs\/(?:debate-space|session-end)\/dist\/(.+)$/;
const SAMPLE_EVERY_MICROSECONDS = 200;
const NO_FRAME = { url: '', functionName: '', lineNumber: 0 };

/** Percentages of the samples in which the process was not idle. */
export interface OwnShare {
  readonly samples: number;
  /** Of the plugin's own frames. */
  readonly own: number;
  readonly ownAndCalled: number;
  /** Of each function of the plugin, with what it calls. */
  readonly functions: readonly (readonly [name: string, percent: number])[];
}

/** @returns stops it */
export async function startProfile(): Promise<() => Promise<OwnShare>> {
  const inspector = new Session();
  inspector.connect();
  await inspector.post('Profiler.enable');
  await inspector.post('Profiler.setSamplingInterval', { interval: SAMPLE_EVERY_MICROSECONDS });
  await inspector.post('Profiler.start');
  return async () => ownShare((await inspector.post('Profiler.stop')).profile);
}

function ownShare({ nodes, samples = [] }: Profiler.Profile): OwnShare {
  const parents = new Map(
    nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const owners = new Map(nodes.map(({ id }) => [id, owner(id)]));
  const busy = samples.filter((id) => frames.get(id)?.functionName !== '(idle)');
  const percent = (count: number): number => (count / busy.length) * 100;
  const counts = new Map<string, number>();
  for (const id of busy) {
    const name = owners.get(id);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  return {
    samples: busy.length,
    own: percent(busy.filter((id) => OWN.test(frames.get(id)?.url ?? '')).length),
    ownAndCalled: percent(sorted.reduce((sum, [, count]) => sum + count, 0)),
    functions: sorted.slice(0, 20).map(([name, count]) => [name, percent(count)]),
  };

  /** The function of the plugin that this one is, or that has called it; `undefined` when the host's code is nearer. */
  function owner(id: number): string | undefined {
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const { url, functionName, lineNumber } = frames.get(at) ?? NO_FRAME;
      if (url === '' || url.startsWith('node:')) continue;
      const path = OWN.exec(url)?.[1];
      return path && `${functionName || '(anonymous)'} ${path}:${lineNumber + 1}`;
    }
    return undefined;
  }
}
