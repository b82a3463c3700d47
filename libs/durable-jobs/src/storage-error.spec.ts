import { expect, it } from '@jest/globals';
import { StorageError } from './storage.js';

it('the error of a storage has the hint in its message and as a property', () => {
  const error = new StorageError('It fails', 'repair it');
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ code: 'ERR_DURABLE_JOBS_STORAGE', problem: 'It fails', hint: 'repair it' });
  expect(String(error)).toBe('StorageError: It fails; hint: repair it');
  expect(Object.keys(error)).toEqual(['code', 'name']);
  expect(new StorageError('It fails').message).toBe('It fails');
});
