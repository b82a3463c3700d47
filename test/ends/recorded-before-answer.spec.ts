import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { endingCells } from 'debate-space-fixtures/ending-stacks.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { storageWith } from 'debate-space-fixtures/storage-with.js';

const scene = scenario();

const STACKS = [
  'Express, express-session',
  'Express, passport',
  'Fastify, @fastify/session',
  'Fastify, @fastify/passport',
];
/** Ends that are not certain when the answer leaves, or that no request is part of. */
const LATER = new Set([
  'session.destroy without a callback', // the store says nothing
  // The cookies have to leave first.
  'the cookie is cleared, and the session left behind',
  'the cookie is cleared, and another one names the session',
  'the cookie is cleared by the head itself',
  'the cookie is cleared by the head of a hijacked reply',
  'the cookie is cleared before the session middleware',
  'the cookie is cleared before the session plugin',
  'Clear-Site-Data clears the cookies',
  'Clear-Site-Data clears everything before the session middleware',
  'Clear-Site-Data clears everything before the session plugin',
  'another session is generated, and the old one left behind',
  'destroyed after the response',
  'passport: logout after the response',
  'regenerated for the same user when the cookies have left',
  'store.destroy with no request',
  'store.clear',
]);
const cells = endingCells.filter(
  ({ stack, name, ends, isAnswered }) => ends && isAnswered && STACKS.includes(stack) && !LATER.has(name),
);

describe('when the browser has the whole answer, the logout is in the storage', () => {
  it.each(cells)('$stack: $name', async ({ observe }) => {
    let isStored = false;
    let wasStored: boolean | undefined;
    const inMemory = storageWith((memory) => ({
      commit: async (checks, changes) => {
        for (let turn = 0; turn < 50; turn += 1) await nextTurn();
        const isMade = await memory.commit(checks, changes);
        isStored ||= [...changes.keys()].some((key) => key.startsWith('logoutpending:'));
        return isMade;
      },
    }));
    const storage = { ...inMemory, durable: true }; // no answer waits for what a crash loses anyway
    await observe(scene.service, { storage, storageKey: 'the storage key of a test' }, () => {
      wasStored = isStored;
    });
    expect(wasStored).toBe(true);
  });
});
