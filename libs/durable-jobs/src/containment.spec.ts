import { describe, expect, it } from '@jest/globals';
import { Containment } from './containment.js';

describe('the containment', () => {
  const failure = new TypeError('out of order');
  const failures: { readonly name: string; readonly work: () => unknown }[] = [
    {
      name: 'throws',
      work: () => {
        throw failure;
      },
    },
    { name: 'rejects', work: () => Promise.reject(failure) },
  ];

  it('returns what the work returns', async () => {
    const containment = new Containment((_, error) => {
      throw error;
    });
    expect(containment.run('a job', () => 1, 0)).toBe(1);
    expect(await containment.run('a job', () => Promise.resolve(1), 0)).toBe(1);
  });

  it.each(failures)('reports work that $name, with the place and the error', async ({ work }) => {
    const faults: unknown[] = [];
    const containment = new Containment((...fault) => faults.push(fault));
    expect(await containment.run<unknown>('a job', work, 'otherwise')).toBe('otherwise');
    expect(faults).toEqual([['a job', failure]]);
  });

  it.each(failures)('contains work that $name though the report fails, too', async ({ work }) => {
    const containment = new Containment(() => {
      throw new Error('the logger is broken as well');
    });
    expect(await containment.run<unknown>('a job', work, 'otherwise')).toBe('otherwise');
  });
});
