import type { Outbox, OutboxContext } from '../outbox/outbox.js';
import { plainUidCipher } from '../uid-cipher.js';
import type { DebateSpaceStorage, StorageEngine } from '../storage/storage.js';
import { DueRows } from './due-rows.js';
import { KeyedMutex } from './keyed-mutex.js';
import { LogoutDesk } from './logout-desk.js';
import { LogoutHistory } from './logout-history.js';
import { LogoutQueue } from './logout-queue.js';
import { LogoutRecords } from './logout-records.js';
import { tryAcquire } from './shared-rate.js';
import { run, type Steps } from './steps.js';

type MaybePromise<T> = T | Promise<T>;

/** How often a process looks for what others left. */
const LOOK_MS = 1_500;
const MAX_HISTORY_IN_MEMORY = 100_000;

/** The logouts of an application, in a storage. */
export function outboxOn(
  storage: DebateSpaceStorage,
  { name, guarantee, durable }: StorageEngine,
  given: OutboxContext,
): Outbox {
  // A uid that stays in the memory of its process needs no encryption.
  const context = durable ? given : { ...given, uids: plainUidCipher(given.uids) };
  const due = new DueRows(storage);
  const history = new LogoutHistory(storage, context, durable ? Infinity : MAX_HISTORY_IN_MEMORY);
  const records = new LogoutRecords(storage, context, due, history);
  const queue = new LogoutQueue(records);
  const desk = new LogoutDesk(records);
  const mutex = new KeyedMutex(); // keeps the order of the calls about one logout
  const inOrder = <T>(id: string, steps: Steps<T>): MaybePromise<T> => mutex.run(id, () => run(steps));
  let changed = (): void => undefined;
  /** What was changed may be due earlier than the listener knows. */
  function* heard<T>(steps: Steps<T>): Steps<T> {
    const result = yield* steps;
    changed();
    return result;
  }
  function* look(): Steps<void> {
    changed();
    yield* due.pullBack();
    yield* history.prune();
  }
  async function lookAround(): Promise<void> {
    try {
      await run(look());
    } catch {
      // The storage cannot be reached: every call says so, and the next look is soon.
    }
  }
  const timer = setInterval(given.contained, LOOK_MS, () => void lookAround()).unref();
  return {
    engine: name,
    promise: guarantee,
    durable,
    warnings: storage.warnings,
    // What outlives a process may be shared by several.
    ...(durable && { admit: async (requests, perMs) => run(tryAcquire(storage, requests, perMs)) }),
    hold: (entry, leaseMs) => inOrder(entry.id, heard(queue.hold(entry, leaseMs))),
    extend: (id, leaseMs) => inOrder(id, queue.extend(id, leaseMs)),
    release: (id) => inOrder(id, heard(queue.release(id))),
    cancel: (id) => inOrder(id, queue.cancel(id)),
    claim: (limit, leaseMs) => run(queue.claim(limit, leaseMs)), // in no order: one without an answer holds up no other
    retry: (id, progress, delayMs) => inOrder(id, heard(queue.retry(id, progress, delayMs))),
    finish: (id, attempts) => inOrder(id, queue.finish(id, attempts)),
    park: (id, progress, hint) => inOrder(id, queue.park(id, progress, hint)),
    pause: (ms) => run(due.pause(ms)),
    counts: () => run(desk.counts()),
    oldestPending: () => run(desk.oldestPending()),
    nextDueMs: () => run(due.nextMs()),
    onChange: (listener) => void (changed = listener),
    parked: (limit, skip) => run(desk.parked(limit, skip)),
    retryParked: (id) => inOrder(id, heard(desk.retryParked(id))),
    discard: (id) => inOrder(id, desk.discard(id)),
    ofUser: (uid) => run(desk.ofUser(uid, (id) => queue.leaseEnd(id))),
    supersede: (uid, endedUntil) => run(desk.supersede(uid, endedUntil)),
    close: async () => {
      clearInterval(timer);
      changed = () => undefined;
      await mutex.idle();
      await storage.close();
    },
  };
}
