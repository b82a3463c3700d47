import { describe, expect, it } from '@jest/globals';
import { endingCells } from 'debate-space-fixtures/ending-stacks.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const scene = scenario();

/** light-my-request requires an ES module, which jest cannot on this Node.js: `npm run test:matrix` plays this column. */
const ONLY_IN_MATRIX = 'Fastify on AWS Lambda, @fastify/aws-lambda';

const playable = endingCells.filter(({ stack }) => stack !== ONLY_IN_MATRIX);
const cells = playable.map((cell) => ({ ...cell, verdict: cell.ends ? 'reported once' : 'silent' }));

// One column of the table, on the NestJS of this workspace; `npm run test:matrix` has the others.
describe('an end of a session is reported once and a look-alike is not', () => {
  it.each(cells)(
    '$stack: $name – $verdict',
    async ({ ends, observe }) => {
      expect(await observe(scene.service)).toEqual({ loggedOut: ends, reported: ends ? ['alice'] : [] });
    },
    60_000,
  ); // an end that is reported by its lease only takes half of it
});
