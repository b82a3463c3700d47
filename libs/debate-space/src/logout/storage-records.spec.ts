import { expect, it } from '@jest/globals';
import { openMemory } from '../../../../test/support/outbox-engines.js';
import { StorageError } from '../errors.js';
import { StorageRecords } from './storage-records.js';

const nothing = new Map<string, string>();

it('keeps the records of erasures in a family of their own', async () => {
  const storage = openMemory();
  const records = new StorageRecords(storage);
  await storage.commit(nothing, new Map([['pending:b', 'a logout'], ['rate:b', 'a request']])); // prettier-ignore
  expect(records.change(nothing, new Map([['b/1', 'one'], ['a', ''], ['~', 'last']]))).toBe(true); // prettier-ignore
  expect(records.get(['b/1', 'none', 'a', '~'])).toEqual(['one', undefined, '', 'last']);
  expect(records.range('', '~', 10)).toEqual([['a', ''], ['b/1', 'one']]); // prettier-ignore
  expect(records.range('b/', 'b0', 10)).toEqual([['b/1', 'one']]);
  expect(records.range('', '~', 1)).toEqual([['a', '']]);
  expect(storage.count('erasure')).toBe(3);
});

it('changes records only when all of them are as expected', () => {
  const records = new StorageRecords(openMemory());
  records.change(nothing, new Map([['a', '1']]));
  const changes = new Map([['a', undefined], ['b', '2']]); // prettier-ignore
  expect(records.change(new Map([['a', '1'], ['b', 'x']]), changes)).toBe(false); // prettier-ignore
  expect(records.get(['a', 'b'])).toEqual(['1', undefined]);
  expect(records.change(new Map([['a', '1'], ['b', undefined]]), changes)).toBe(true); // prettier-ignore
  expect(records.get(['a', 'b'])).toEqual([undefined, '2']);
});

it('takes the longest key of an erasure', () => {
  const records = new StorageRecords(openMemory());
  const key = `r/${'%F0%9F%A6%8A'.repeat(128)}`.slice(0, 1_250);
  records.change(nothing, new Map([[key, '1']]));
  expect(records.get([key])).toEqual(['1']);
});

it('fails as the storage does', async () => {
  const storage = openMemory();
  const records = new StorageRecords(storage);
  await storage.close();
  expect(() => records.get(['a'])).toThrow(StorageError);
  expect(() => records.range('a', 'b', 1)).toThrow(StorageError);
  expect(() => records.change(nothing, nothing)).toThrow(StorageError);
});
