import { describe, expect, it, jest } from '@jest/globals';
import { lazy } from './promises.js';

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
