import { afterAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import { configurations } from 'debate-space-fixtures/walk/configurations.js';
import { Places } from 'debate-space-fixtures/walk/places.js';
import { inWords, stepsOf } from 'debate-space-fixtures/walk/steps.js';
import { walk } from 'debate-space-fixtures/walk/walk.js';

/** Always the same walks: `npm run walk` takes others, with servers and on each NestJS. */
const SAME = { seed: 21, interruptAfterTimeLimit: 60_000 };
const chosen = configurations.filter(
  ({ store, instances, expiry }) =>
    !expiry && instances === 1 && (store === 'memory' || store === 'slow memory'),
);

const places = new Places({});
afterAll(() => places.close());

describe('whatever browsers, administrators and jobs do, each end is reported once, and nothing else is', () => {
  it.each(chosen)('the plugin misses, invents and repeats no end on $name', async (configuration) => {
    const steps = stepsOf(configuration);
    const property = fc.asyncProperty(steps, async (list) => {
      const { findings, steps: taken } = await walk(configuration, places, list);
      const [finding] = findings;
      if (!finding) return;
      const words = list.slice(0, taken).map((step, n) => `${n + 1}. ${inWords(step)}`);
      throw new Error([`${finding.wrong}: ${finding.text}`, ...words].join('\n'));
    });
    await fc.assert(property, { ...SAME, numRuns: 2 });
  });
});
