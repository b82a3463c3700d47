import { expect, it, jest } from '@jest/globals';
import type { Logouts } from '../logout/logouts.js';
import { DebateSpaceOutbox, type OutboxParts } from './debate-space-outbox.js';

function outboxOf(logouts: Partial<Logouts>, workOff: OutboxParts['workers']['workOff']) {
  const woken: string[] = [];
  const lane = (name: string) => ({ wake: () => void woken.push(name) });
  const parts = {
    engine: { name: 'postgres', durable: true },
    watch: { isDegraded: false },
    breaker: { isOpen: false },
    workers: { stored: lane('stored'), memory: lane('memory'), workOff },
    logouts,
  };
  return { outbox: new DebateSpaceOutbox(parts as unknown as OutboxParts), woken };
}
const counts = () => Promise.resolve({ pending: 0, parked: 0 });
const nothing = () => Promise.resolve(true);

it('a parked logout that is retried wakes the lanes, which would look for it only later', async () => {
  const { outbox, woken } = outboxOf({ retry: () => Promise.resolve(true) }, nothing);
  expect(await outbox.retry('a')).toBe(true);
  expect(woken).toEqual(['stored', 'memory']);
});

it('calls of drain at the same time are one drain', async () => {
  const workOff = jest.fn(nothing);
  const { outbox } = outboxOf({ counts }, workOff);
  await Promise.all([outbox.drain(), outbox.drain()]);
  expect(workOff).toHaveBeenCalledTimes(1);
  await outbox.drain();
  expect(workOff).toHaveBeenCalledTimes(2);
});

it('the stats say for how long the storage has not been readable', async () => {
  const away = (): Promise<never> => Promise.reject(new Error('away'));
  const { outbox } = outboxOf({ counts: away, memoryCounts: counts }, nothing);
  const clock = jest.spyOn(performance, 'now');
  const unreadableAt = async (now: number): Promise<number | undefined> => {
    clock.mockReturnValue(now);
    return (await outbox.stats()).unreadableMs;
  };
  expect([await unreadableAt(1_000), await unreadableAt(61_000)]).toEqual([0, 60_000]);
  clock.mockRestore();
});
