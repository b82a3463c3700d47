import { strict as assert } from 'node:assert';
import type { Storage } from '../storage.js';
import { everything, numbered, values, withStorage, type ContractCases } from './contract-case.js';

/** Adds one to a number, however many others do the same. */
export async function increment(storage: Storage, key: string): Promise<void> {
  for (;;) {
    const [before] = await storage.get([key]);
    const after = String(Number(before ?? 0) + 1);
    if (await storage.commit(values({ [key]: before }), values({ [key]: after }))) return;
  }
}

export const competitionCases: ContractCases = {
  'only one of many commits that need an absent key is made': withStorage(async (storage) => {
    const names = numbered(20, 'name ');
    const made = await Promise.all(
      names.map(async (name) => storage.commit(values({ 'a:1': undefined }), values({ 'a:1': name }))),
    );
    const first = names.filter((_, n) => made[n]);
    assert.equal(first.length, 1);
    assert.deepEqual(await storage.get(['a:1']), first);
  }),

  'forty simultaneous increments of one number lose none': withStorage(async (storage) => {
    await Promise.all(numbered(40).map(() => increment(storage, 'a:count')));
    assert.deepEqual(await storage.get(['a:count']), ['40']);
  }),

  'simultaneous commits that take several keys in different orders all end': withStorage(async (storage) => {
    const keys = ['a:1', 'b:1', 'c:1'];
    const move = async (turn: number): Promise<void> => {
      const own = [...keys.slice(turn % 3), ...keys.slice(0, turn % 3)];
      for (;;) {
        const found = await storage.get(own);
        const checks = new Map(own.map((key, n) => [key, found[n]]));
        const changes = new Map(
          own.toReversed().map((key) => [key, String(Number(checks.get(key) ?? 0) + 1)]),
        );
        if (await storage.commit(checks, changes)) return;
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, turn) => move(turn)));
    assert.deepEqual(await everything(storage), { 'a:1': '24', 'b:1': '24', 'c:1': '24' });
  }),

  'simultaneous commits of different keys are all made': withStorage(async (storage) => {
    const keys = numbered(200);
    const commits = keys.map(async (key) =>
      storage.commit(values({ [key]: undefined }), values({ [key]: key })),
    );
    assert.deepEqual(new Set(await Promise.all(commits)), new Set([true]));
    assert.deepEqual(await everything(storage), Object.fromEntries(keys.map((key) => [key, key])));
  }),
};
