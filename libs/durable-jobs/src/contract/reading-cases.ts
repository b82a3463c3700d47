import { strict as assert } from 'node:assert';
import {
  numbered,
  put,
  rowsOf,
  values,
  withStorage,
  type ContractCases,
  everything,
} from './contract-case.js';

/** The printable characters of ASCII, from the highest to the lowest. */
const PRINTABLE = String.fromCharCode(...Array.from({ length: 95 }, (_, n) => 126 - n));

export const readingCases: ContractCases = {
  'a new storage is empty': withStorage(async (storage) => {
    assert.deepEqual(await storage.get([]), []);
    assert.deepEqual(await storage.get(['a:1']), [undefined]);
    assert.deepEqual(await rowsOf(storage, 'a'), []);
    assert.equal(await storage.count('a'), 0);
  }),

  'get returns the values in the order of the keys': withStorage(async (storage) => {
    await put(storage, { 'b:1': 'two', 'a:1': 'one' });
    const found = await storage.get(['b:1', 'a:none', 'a:1', 'b:1']);
    assert.deepEqual(found, ['two', undefined, 'one', 'two']);
  }),

  'get returns 2,500 values': withStorage(async (storage) => {
    const keys = numbered(2_500);
    await storage.commit(new Map(), new Map(keys.map((key) => [key, `value of ${key}`])));
    const found = await storage.get([...keys, 'a:none']);
    assert.deepEqual(found, [...keys.map((key) => `value of ${key}`), undefined]);
  }),

  'the empty text is a value': withStorage(async (storage) => {
    await put(storage, { 'a:1': '' });
    assert.deepEqual(await storage.get(['a:1']), ['']);
    assert.deepEqual(await rowsOf(storage, 'a'), [['a:1', '']]);
    assert.equal(await storage.commit(values({ 'a:1': undefined }), values({ 'a:1': 'x' })), false);
    assert.equal(await storage.commit(values({ 'a:1': '' }), values({ 'a:1': 'x' })), true);
    assert.equal(await storage.commit(values({ 'a:none': '' }), values({ 'a:1': 'y' })), false);
  }),

  'keys of all printable characters and long texts come back as they were': withStorage(async (storage) => {
    const longKey = `b:${'k'.repeat(1_498)}`;
    const record = {
      [`a:${PRINTABLE}`]: 'Zoë 🦊\n\t"\\ {"a":1} $1 :x ?',
      'a:': 'an empty rest',
      'a:a%20b/c:d': '007',
      [longKey]: 'ü'.repeat(100_000),
    };
    await put(storage, record);
    assert.deepEqual(await storage.get(Object.keys(record)), Object.values(record));
    assert.deepEqual(await rowsOf(storage, 'b'), [[longKey, record[longKey]]]);
    assert.deepEqual(
      (await rowsOf(storage, 'a')).map(([key]) => key),
      ['a:', 'a:a%20b/c:d', `a:${PRINTABLE}`],
    );
  }),

  'long keys that differ in their last character are two keys': withStorage(async (storage) => {
    const [one, other] = [`a:${'k'.repeat(1_497)}1`, `a:${'k'.repeat(1_497)}2`];
    await put(storage, { [one]: '1', [other]: '2' });
    assert.deepEqual(await rowsOf(storage, 'a'), [
      [one, '1'],
      [other, '2'],
    ]);
  }),

  'a range is in the order of the bytes': withStorage(async (storage) => {
    const sorted = [' ', '!', '-', '10', '2', ':', 'A', 'Z', '_', 'a', 'a ', 'a-', 'aa', 'b', 'zz', '~'].map(
      (rest) => `a:${rest}`,
    );
    for (const key of sorted.toReversed()) await put(storage, { [key]: key });
    assert.deepEqual(
      (await rowsOf(storage, 'a')).map(([key]) => key),
      sorted,
    );
  }),

  'a range includes its first key and excludes its last one': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1', 'a:2': '2', 'a:3': '3' });
    assert.deepEqual(await storage.range('a:1', 'a:3', { limit: 10 }), [
      ['a:1', '1'],
      ['a:2', '2'],
    ]);
    assert.deepEqual(await storage.range('a:2', 'a:2', { limit: 10 }), []);
    assert.deepEqual(await storage.range('a:3', 'a:1', { limit: 10 }), []);
    assert.deepEqual(await storage.range('a:11', 'a:29', { limit: 10 }), [['a:2', '2']]);
  }),

  'a reverse range has the same rows from the end': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1', 'a:2': '2', 'a:3': '3' });
    const reverse = async (from: string, to: string, limit = 10) =>
      (await storage.range(from, to, { limit, reverse: true })).map(([key]) => key);
    assert.deepEqual(await reverse('a:1', 'a:3'), ['a:2', 'a:1']);
    assert.deepEqual(await reverse('a:', 'a;'), ['a:3', 'a:2', 'a:1']);
    assert.deepEqual(await reverse('a:', 'a;', 2), ['a:3', 'a:2']);
    assert.deepEqual(await reverse('a:11', 'a:29'), ['a:2']);
    assert.deepEqual(await reverse('a:2', 'a:2'), []);
    assert.deepEqual(await reverse('a:3', 'a:1'), []);
    assert.deepEqual(await storage.range('a:1', 'a:2', { limit: 1, reverse: true }), [['a:1', '1']]);
  }),

  'a range has no more rows than its limit': withStorage(async (storage) => {
    const keys = numbered(2_500);
    await storage.commit(new Map(), new Map(keys.map((key) => [key, key])));
    const some = async (limit: number) => (await storage.range('a:', 'a;', { limit })).map(([key]) => key);
    for (const limit of [0, 1, 999, 2_499, 2_500, 2_501]) {
      assert.deepEqual(await some(limit), keys.slice(0, limit));
    }
  }),

  'a range has no row of a neighbor family or prefix': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1', 'a:1-': '2', 'a:10': '3', 'a:2': '4', 'ab:1': '5', 'b:': '6' });
    assert.deepEqual((await rowsOf(storage, 'a')).length, 4);
    assert.deepEqual(await rowsOf(storage, 'ab'), [['ab:1', '5']]);
    assert.deepEqual(await rowsOf(storage, 'b'), [['b:', '6']]);
    assert.deepEqual(await storage.range('a:1', 'a:1 ', { limit: 9 }), [['a:1', '1']]);
    assert.deepEqual(await storage.range('a:1-', 'a:1.', { limit: 9, reverse: true }), [['a:1-', '2']]);
  }),
};

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
