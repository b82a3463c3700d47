import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { endingCells } from './support/ending-stacks.js';
import { startService } from './support/service.js';

let service: DebateSpaceSimulator;
beforeAll(async () => {
  service = await startService();
});
beforeEach(() => {
  service.received.clear();
});
afterAll(async () => {
  await service.stop();
});

const cells = endingCells.map((cell) => ({ ...cell, verdict: cell.ends ? 'reported once' : 'silent' }));

// One column of the table, on the NestJS of this workspace; `npm run test:matrix` has the others.
describe('an end of a session is reported once and a look-alike is not', () => {
  it.each(cells)('$stack: $name – $verdict', async ({ ends, observe }) => {
    expect(await observe(service)).toEqual({ loggedOut: ends, told: ends ? ['alice'] : [] });
  });
});
