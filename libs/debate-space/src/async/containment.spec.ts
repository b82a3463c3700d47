import { describe, expect, it } from '@jest/globals';
import { StorageError } from '../errors.js';
import { Containment, faultsTo } from './containment.js';
import type { DebateSpaceEvent } from '../events.js';

function contained(): { containment: Containment; events: DebateSpaceEvent[] } {
  const events: DebateSpaceEvent[] = [];
  return { containment: new Containment(faultsTo((event) => events.push(event))), events };
}

const fault = { type: 'fault', where: 'a listener', error: 'TypeError' };

describe('the containment', () => {
  it('returns what the work returns', async () => {
    const { containment, events } = contained();
    expect(containment.run('a listener', () => 1, 0)).toBe(1);
    expect(await containment.run('a listener', () => Promise.resolve(1), 0)).toBe(1);
    expect(events).toEqual([]);
  });

  const failures: { readonly name: string; readonly work: () => unknown }[] = [
    {
      name: 'throws',
      work: () => {
        throw new TypeError('secret');
      },
    },
    { name: 'rejects', work: () => Promise.reject(new TypeError('secret')) },
  ];
  it.each(failures)('turns work that $name into an event without its message', async ({ work }) => {
    const { containment, events } = contained();
    expect(await containment.run<unknown>('a listener', work, 'otherwise')).toBe('otherwise');
    expect(events).toEqual([fault]);
  });

  it('names the problem of a storage', () => {
    const { containment, events } = contained();
    containment.report('outbox', new StorageError('Redis failed (OOM: out of memory)', 'a hint'));
    const problem = 'Redis failed (OOM: out of memory)';
    expect(events).toEqual([{ type: 'fault', where: 'outbox', error: 'StorageError', problem }]);
  });

  it('reports no failure of the listener that is told of one', () => {
    const told: string[] = [];
    const containment = new Containment((where) => {
      told.push(where);
      containment.report('the listener', new Error('failed again'));
    });
    containment.report('a job', new Error('failed'));
    expect(told).toEqual(['a job']);
  });

  it.each(failures)('contains work that $name though nobody hears of it', async ({ work }) => {
    const containment = new Containment(
      faultsTo(() => {
        throw new Error('the logger is broken as well');
      }),
    );
    expect(await containment.run<unknown>('a listener', work, 'otherwise')).toBe('otherwise');
  });
});
