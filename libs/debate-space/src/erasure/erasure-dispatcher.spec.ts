import { afterEach, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { outboxContext } from '../../../../test/support/outbox-context.js';
import { openMemory } from '../../../../test/support/outbox-engines.js';
import { CircuitBreaker } from '../outbox/circuit-breaker.js';
import { ErasureAttempt } from './erasure-attempt.js';
import { ErasureDispatcher } from './erasure-dispatcher.js';
import { ErasureMaintenance } from './erasure-maintenance.js';
import { ErasureQueue } from './erasure-queue.js';
import { ErasureRequests } from './erasure-requests.js';
import { ErasureStorage } from './erasure-storage.js';

let dispatcher: ErasureDispatcher | undefined;
afterEach(() => {
  dispatcher?.stop();
});

it('lets waiting logouts go first', async () => {
  const storage = new ErasureStorage(openMemory(), outboxContext().uids);
  await new ErasureRequests(storage, 1e9).add({ reference: 'r', mode: 'delete' }, 'alice');
  const seen: string[] = [];
  let asked = 0;
  let erased: () => void = () => undefined;
  const done = new Promise<void>((resolve) => (erased = resolve));
  const emit = (): void => undefined;
  const attempt = new ErasureAttempt({
    erase: () => {
      seen.push('erased');
      erased();
      return Promise.resolve(200);
    },
    isServiceThere: () => Promise.resolve(true),
    closing: new AbortController().signal,
    emit,
  });
  const parts = {
    queue: new ErasureQueue(
      storage,
      new ErasureMaintenance(storage, { overdueAfterMs: [], receiptRetentionMs: 1e9 }, emit),
    ),
    attempt,
    breaker: new CircuitBreaker(4, emit, 1),
    logoutsWait: () => {
      asked += 1;
      seen.push(asked <= 2 ? 'logouts wait' : 'none waits');
      return Promise.resolve(asked <= 2);
    },
    forget: () => pause(0),
    emit,
  };
  dispatcher = new ErasureDispatcher(parts, { giveUpAfterMs: 1e9 });
  dispatcher.start();
  await done;
  expect(seen.slice(0, 4)).toEqual(['logouts wait', 'logouts wait', 'none waits', 'erased']);
  await dispatcher.idle(1_000);
});
