import { describe, expect, it, jest } from '@jest/globals';
import { chain, lazy } from './promises.js';

describe('lazy', () => {
  it('loads with the first call and not again', async () => {
    const load = jest.fn(() => Promise.resolve('loaded'));
    const loaded = lazy(load);
    expect(load).not.toHaveBeenCalled();
    expect(await Promise.all([loaded(), loaded()])).toEqual(['loaded', 'loaded']);
    expect(await loaded()).toBe('loaded');
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('loads again after a failure', async () => {
    const load = jest.fn<() => Promise<string>>();
    load.mockRejectedValueOnce(new Error('too many open files')).mockResolvedValueOnce('loaded');
    const loaded = lazy(load);
    await expect(loaded()).rejects.toThrow('too many open files');
    expect(await loaded()).toBe('loaded');
  });
});

describe('chain', () => {
  const next = (n: number): string => `${n}`;
  const failed = (error: unknown): string => (error as Error).message;
  const fail = (): never => {
    throw new Error('failed');
  };

  it('stays synchronous when the call is', () => {
    expect(chain(() => 1, next)).toBe('1');
    expect(chain(fail, next, failed)).toBe('failed');
    expect(() => chain(fail, next)).toThrow('failed');
  });

  it('waits for a promise, and handles its rejection', async () => {
    const rejecting = () => Promise.reject<number>(new Error('failed'));
    expect(await chain(() => Promise.resolve(1), next)).toBe('1');
    expect(await chain(rejecting, next, failed)).toBe('failed');
    await expect(chain(rejecting, next)).rejects.toThrow('failed');
  });
});
