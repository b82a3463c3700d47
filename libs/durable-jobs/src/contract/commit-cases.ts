import { strict as assert } from 'node:assert';
import {
  everything,
  numbered,
  put,
  rowsOf,
  values,
  withStorage,
  type ContractCases,
} from './contract-case.js';

/** `a:1` and `b:2` are there, `c:3` is not. */
const FAILING: Readonly<Record<string, Record<string, string | undefined>>> = {
  'a key has another value than checked': { 'a:1': '1', 'b:2': 'not 2' },
  'a key that was checked to be absent is there': { 'a:1': undefined, 'b:2': '2' },
  'a key that was checked to be there is absent': { 'a:1': '1', 'b:2': '2', 'c:3': '3' },
  'the first of several checks fails': { 'a:1': 'not 1', 'b:2': '2', 'c:3': undefined },
};

const failing: ContractCases = Object.fromEntries(
  Object.entries(FAILING).map(([what, checks]) => [
    `a commit changes nothing when ${what}`,
    withStorage(async (storage) => {
      await put(storage, { 'a:1': '1', 'b:2': '2' });
      const changes = values({ 'a:1': '10', 'b:2': undefined, 'c:3': '30', 'a:4': '40' });
      assert.equal(await storage.commit(values(checks), changes), false);
      assert.deepEqual(await everything(storage), { 'a:1': '1', 'b:2': '2' });
    }),
  ]),
);

export const commitCases: ContractCases = {
  'a commit makes all changes when every check holds': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1', 'b:2': '2' });
    const checks = values({ 'c:3': undefined, 'a:1': '1', 'b:2': '2', 'a:none': undefined });
    const changes = values({ 'b:2': undefined, 'a:1': '10', 'c:3': '30', 'a:4': '' });
    assert.equal(await storage.commit(checks, changes), true);
    assert.deepEqual(await everything(storage), { 'a:1': '10', 'a:4': '', 'c:3': '30' });
  }),

  ...failing,

  'a check of an absent key leaves no row behind': withStorage(async (storage) => {
    assert.equal(await storage.commit(values({ 'a:1': undefined }), values({ 'a:2': '2' })), true);
    assert.equal(
      await storage.commit(values({ 'a:1': undefined, 'a:2': 'x' }), values({ 'a:3': '3' })),
      false,
    );
    assert.deepEqual(await everything(storage), { 'a:2': '2' });
    assert.equal(await storage.count('a'), 1);
  }),

  'a commit without changes answers whether the checks hold': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1' });
    assert.equal(await storage.commit(values({ 'a:1': '1', 'b:2': undefined }), new Map()), true);
    assert.equal(await storage.commit(values({ 'a:1': '2' }), new Map()), false);
    assert.equal(await storage.commit(new Map(), new Map()), true);
  }),

  'the removal of an absent key is no conflict': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1' });
    assert.equal(await storage.commit(new Map(), values({ 'a:none': undefined, 'a:1': undefined })), true);
    assert.deepEqual(await everything(storage), {});
  }),

  'a commit writes the same value again': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1' });
    assert.equal(await storage.commit(values({ 'a:1': '1' }), values({ 'a:1': '1' })), true);
    assert.deepEqual(await everything(storage), { 'a:1': '1' });
  }),

  'a commit of 2,000 keys is made or not, as a whole': withStorage(async (storage) => {
    const keys = numbered(2_000);
    const all = (value: string | undefined) => new Map(keys.map((key) => [key, value]));
    const text = 'x'.repeat(300);
    assert.equal(await storage.commit(all(undefined), all(text)), true);
    assert.equal((await rowsOf(storage, 'a')).length, 2_000);
    const last = new Map([...all(text), ['a:1999', 'another']]);
    assert.equal(await storage.commit(last, all('changed')), false);
    assert.deepEqual(new Set((await rowsOf(storage, 'a')).map(([, value]) => value)), new Set([text]));
    assert.equal(await storage.commit(all(text), all(undefined)), true);
    assert.deepEqual(await rowsOf(storage, 'a'), []);
  }),

  'count is the number of rows of a family': withStorage(async (storage) => {
    await storage.commit(new Map(), new Map(numbered(100).map((key) => [key, ''])));
    await put(storage, { 'ab:1': '1', 'b:1': '1' });
    await storage.commit(new Map(), values({ 'a:0000': undefined, 'a:none': undefined }));
    await storage.commit(values({ 'a:0001': 'not' }), values({ 'a:new': '1' }));
    await agrees(() => storage.count('a'), 99);
    await agrees(() => storage.count('ab'), 1);
    await agrees(() => storage.count('c'), 0);
  }),
};

/** A count may be a second old. */
async function agrees(count: () => number | Promise<number>, expected: number): Promise<void> {
  const until = performance.now() + 2_000;
  while ((await count()) !== expected && performance.now() < until)
    await new Promise((done) => setTimeout(done, 50));
  assert.equal(await count(), expected);
}
