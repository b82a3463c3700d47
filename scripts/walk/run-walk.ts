// Walks in every chosen configuration on the NestJS that is installed here, and prints what came of each. In a process of
// its own: a host has no test runner around it. Argument: the settings, as JSON.
import fc from 'fast-check';
import { configurations, type Configuration } from './configurations.js';
import { Places, type Servers } from './places.js';
import { inWords, stepsOf, type Step } from './steps.js';
import { walk, type Finding } from './walk.js';

export interface WalkSettings extends Servers {
  /** Of all configurations together. */
  readonly steps: number;
  readonly seed: number;
  /** Replays one walk of the configuration that is chosen. */
  readonly path?: string | undefined;
  /** What the name of a configuration contains. */
  readonly only?: string | undefined;
  /** How many findings of a configuration are shrunk, which takes most of the time; never two of the same kind of step. */
  readonly shrink: number;
}

type Failing = Finding & { readonly steps: readonly Step[] };

/** Walks of one seed. */
const WALKS = 100;
const LONGEST_SHRINK_MS = 120_000;

async function main(settings: WalkSettings): Promise<boolean> {
  const chosen = configurations.filter(({ name }) => name.includes(settings.only ?? ''));
  const places = new Places(settings);
  let isRight = chosen.length > 0;
  for (const configuration of chosen) {
    const result = { steps: 0, ends: 0, missed: 0, invented: 0, ms: 0 };
    await walkIn(configuration, places, { ...settings, steps: settings.steps / chosen.length }, result);
    const { steps, ends, missed, invented, ms } = result;
    const pace = `${steps} steps (${Math.round((steps * 60_000) / ms)} a minute)`;
    console.log(`${configuration.name}: ${pace}, ${ends} ends, ${missed} missed, ${invented} invented`);
    isRight &&= missed + invented === 0;
  }
  await places.close();
  return isRight;
}

async function walkIn(
  configuration: Configuration,
  places: Places,
  { steps: wanted, seed, path, shrink }: WalkSettings,
  result: Record<Finding['wrong'] | 'steps' | 'ends' | 'ms', number>,
): Promise<void> {
  const shrunk = new Set<string>();
  const begin = path === undefined ? seedOf(seed, configuration) : seed;
  for (let next = begin; result.steps < wanted; next += 1) {
    let first: Finding | undefined;
    const found: { failing?: Failing; isShrinking: boolean } = { isShrinking: false };
    let until = Infinity;
    const property = fc.asyncProperty(stepsOf(configuration), async (list) => {
      if (first ? !found.isShrinking || performance.now() > until : result.steps >= wanted) return;
      const at = performance.now();
      const { steps, ends, findings } = await walk(configuration, places, list);
      if (!first) {
        result.steps += steps;
        result.ends += ends;
        result.ms += performance.now() - at;
        for (const { wrong } of findings) result[wrong] += 1;
      }
      // While it shrinks, only what is wrong in the same way counts.
      const same = first ? findings.find(({ wrong }) => wrong === first?.wrong) : findings[0];
      if (!same) return;
      found.failing = { ...same, steps: list.slice(0, steps) };
      if (!first) {
        const key = `${same.wrong} ${same.kind}`;
        found.isShrinking = !shrunk.has(key) && shrunk.size < shrink;
        if (found.isShrinking) shrunk.add(key);
        until = performance.now() + LONGEST_SHRINK_MS;
        first = same;
      }
      throw new Error(same.text);
    });
    const outcome = await fc.check(property, { seed: next, path, numRuns: WALKS });
    if (found.isShrinking && found.failing) print(configuration, found.failing, outcome);
    if (outcome.failed && !found.failing) throw outcome.errorInstance;
    if (path !== undefined) return;
  }
}

/** Each configuration has walks of its own. */
function seedOf(seed: number, { name }: Configuration): number {
  return Array.from(name).reduce((mixed, char) => (Math.imul(mixed, 31) + char.charCodeAt(0)) >>> 1, seed);
}

function print(
  { name }: Configuration,
  { wrong, text, steps }: Failing,
  { seed, counterexamplePath }: { readonly seed: number; readonly counterexamplePath: string | null },
): void {
  const replay = `--seed ${seed} --path ${counterexamplePath ?? ''} --only "${name}"`;
  const list = steps.map((step, n) => `  ${n + 1}. ${inWords(step)}`);
  console.log([`${wrong.toUpperCase()} in ${name}: ${text}`, `  ${replay}`, ...list].join('\n'));
}

process.once('disconnect', () => process.exit(1));
void main(JSON.parse(process.argv[2] ?? '{}') as WalkSettings).then(
  (isRight) => process.exit(isRight ? 0 : 1),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
