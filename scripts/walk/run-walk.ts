// Walks in every configuration that is chosen, on the NestJS that is installed here, and prints what came of each.
import fc from 'fast-check';
import { platforms } from 'debate-space-fixtures/walk/hand.js';
import { placeNames, Places, type Servers } from 'debate-space-fixtures/walk/places.js';
import { inWords, stepsOf, type Step } from 'debate-space-fixtures/walk/steps.js';
import { startService } from 'debate-space-fixtures/service.js';
import { Walk, type Configuration, type Wrong } from 'debate-space-fixtures/walk/walk.js';

export interface WalkSettings extends Servers {
  /** Of all configurations together. */
  readonly steps: number;
  readonly seed: number;
  /** Replays one walk of one configuration. */
  readonly path?: string | undefined;
  readonly only?: string | undefined;
}

interface Result extends Record<Wrong, number> {
  steps: number;
  ends: number;
}

export const configurations: readonly (Configuration & { readonly name: string })[] = platforms.flatMap(
  (platform) =>
    placeNames.flatMap((store) =>
      (['any', 'last'] as const).flatMap((policy) =>
        [false, true].flatMap((expiry) =>
          ([1, 2] as const).map((instances) => ({
            ...{ platform, store, policy, expiry, instances },
            name: [platform, store, policy, ...(expiry ? ['expiry'] : []), `${instances} app${instances > 1 ? 's' : ''}`].join(
              '; ',
            ),
          })),
        ),
      ),
    ),
);

/** @returns whether nothing was wrong */
export async function runWalk(settings: WalkSettings): Promise<boolean> {
  const chosen = configurations.filter(({ name }) => name.includes(settings.only ?? ''));
  const places = new Places(settings);
  let isRight = chosen.length > 0;
  for (const each of chosen) {
    const result: Result = { steps: 0, ends: 0, missed: 0, invented: 0, twice: 0 };
    const at = performance.now();
    await walkIn(each, places, Math.ceil(settings.steps / chosen.length), settings, result);
    const { steps, ends, missed, invented, twice } = result;
    const perMinute = Math.round((steps * 60_000) / (performance.now() - at));
    isRight &&= missed + invented + twice === 0;
    console.log(
      `${each.name}: ${steps} steps (${perMinute} a minute), ${ends} ends, ${missed} missed, ${invented} invented, ${twice} twice`,
    );
  }
  await places.close();
  return isRight;
}

async function walkIn(
  configuration: Configuration,
  places: Places,
  steps: number,
  { seed, path }: WalkSettings,
  result: Result,
): Promise<void> {
  const shrunk = new Set<Wrong>();
  let walks = 0;
  for (let next = seed; result.steps < steps; next += 1) {
    let first: Wrong | undefined;
    const property = fc.asyncProperty(stepsOf({ expires: true }), async (list: Step[]) => {
      // Enough steps; or no need to shrink what is wrong in the same way as before.
      if (first === undefined ? result.steps >= steps : shrunk.has(first)) return;
      walks += 1;
      const service = await startService();
      const place = await places.open(configuration.store, configuration.platform, configuration.instances);
      const walked = await new Walk(configuration, place, service, `-${walks}`).run(list);
      await service.stop();
      if (first === undefined) {
        result.steps += walked.steps;
        result.ends += walked.ends;
        for (const { wrong } of walked.findings) result[wrong] += 1;
      }
      const [finding] = walked.findings;
      // While it shrinks, only what is wrong in the same way counts.
      const same = first === undefined ? finding : walked.findings.find(({ wrong }) => wrong === first);
      if (!same) return;
      first ??= same.wrong;
      throw new Error(same.text);
    });
    const outcome = await fc.check(property, {
      seed: next,
      path,
      numRuns: 100,
      interruptAfterTimeLimit: 3_600_000,
    });
    if (!outcome.failed || outcome.counterexample === null || first === undefined) break;
    if (shrunk.has(first)) continue;
    shrunk.add(first);
    const [list] = outcome.counterexample;
    const found = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : '';
    console.log(
      [
        `${String(first).toUpperCase()}: ${found}`,
        `  --seed ${outcome.seed} --path ${String(outcome.counterexamplePath)} (${outcome.numShrinks} shrinks)`,
        ...list.map((step, n) => `  ${n + 1}. ${inWords(step)}`),
      ].join('\n'),
    );
    if (path !== undefined) break;
  }
}

