import type {
  FinishedEntry,
  LogoutCounts,
  LogoutJob,
  ParkedJob,
  UserHistory,
  WaitingJob,
} from '../logout/logout.js';
import { STATES, type LogoutRecords } from './logout-records.js';
import { endedAtOf, endOf, idOf, queueId, recordKey, userKeysUntil, userPrefix } from './queue-keys.js';
import { all, wait, type Steps } from './steps.js';
import { progressOf, readParked, UNTRIED, type ReadLogout } from './stored-logout.js';

/** What operators and the other parts of the plugin see of the queue, and do with what waits in it. */
export class LogoutDesk {
  readonly #records: LogoutRecords;

  constructor(records: LogoutRecords) {
    this.#records = records;
  }

  *counts(): Steps<LogoutCounts> {
    const counts = ['held', 'pending', 'parked'].map((family) => this.#records.storage.count(family));
    const [held = 0, pending = 0, parked = 0] = yield* wait(all(counts));
    return { held, pending, parked };
  }

  *oldestPending(): Steps<number | undefined> {
    const range = this.#records.storage.range('pending:', endOf('pending:'), { limit: 1 });
    const [row] = yield* wait(range);
    return row && endedAtOf(idOf(row[0]));
  }

  *parked(limit: number, skip = 0): Steps<readonly ParkedJob[]> {
    const { storage } = this.#records;
    const range = storage.range('parkedsince:', endOf('parkedsince:'), { limit: skip + limit });
    const ids = (yield* wait(range)).slice(skip).map(([key]) => idOf(key));
    const texts = yield* wait(storage.get(ids.map((id) => recordKey('parked', id))));
    return texts.flatMap((text, n) => {
      if (text === undefined) return []; // its row was left behind
      const [id = ''] = ids.slice(n);
      const { hint, parkedAt } = readParked(text);
      return [{ ...jobOf(id, this.#records.read('parked', id, text)), hint: hint, parkedAt }];
    });
  }

  *retryParked(entryId: string): Steps<boolean> {
    const id = queueId(entryId);
    return yield* this.#records.replace(id, ['parked'], ({ stored, entry }) =>
      stored && entry ? this.#records.pendingAgain(id, { ...stored, ...UNTRIED }) : undefined,
    );
  }

  *discard(entryId: string): Steps<boolean> {
    const id = queueId(entryId);
    return yield* this.#records.replace(id, ['parked'], ({ stored }) =>
      stored ? this.#records.finished(id, stored, 'discarded', stored.attempts) : [],
    );
  }

  /** @param leaseEnd of a logout that this process has in hand */
  *ofUser(uid: string, leaseEnd: (entryId: string) => number | undefined): Steps<UserHistory> {
    const { storage, context, history } = this.#records;
    const uidHashes = context.uids.hashes(uid);
    const ids: string[] = [];
    const finished: FinishedEntry[] = [];
    for (const uidHash of uidHashes) {
      ids.push(...(yield* this.#records.ids(userPrefix(uidHash), endOf(userPrefix(uidHash)))));
      finished.push(...(yield* history.of(uidHash)));
    }
    const places = ids.flatMap((id) => STATES.map((state) => ({ id, state })));
    const texts = yield* wait(storage.get(places.map(({ id, state }) => recordKey(state, id))));
    const skewMs = storage.now() - Date.now(); // people read the clock of the machine
    const waiting = places.flatMap(({ id, state }, n): readonly WaitingJob[] => {
      const text = texts[n];
      if (text === undefined) return [];
      const read = this.#records.read(state, id, text);
      const job = { ...jobOf(id, read), state };
      if (state === 'parked') return [{ ...job, hint: readParked(text).hint }];
      const dueAt = leaseEnd(job.entry.id) ?? read.stored?.dueAt;
      return [{ ...job, dueAt: dueAt === undefined ? undefined : dueAt - skewMs }];
    });
    return { waiting, finished };
  }

  *supersede(uid: string, endedUntil: number): Steps<number> {
    const ids: string[] = [];
    for (const uidHash of this.#records.context.uids.hashes(uid))
      ids.push(...(yield* this.#records.ids(userPrefix(uidHash), userKeysUntil(uidHash, endedUntil))));
    let superseded = 0;
    for (const id of ids) {
      const isMade = yield* this.#records.replace(
        id,
        ['pending'],
        ({ stored }) => stored && this.#records.finished(id, stored, 'superseded', stored.attempts),
      );
      if (isMade) superseded += 1;
    }
    return superseded;
  }
}

/** As far as the record can be read. */
function jobOf(key: string, { stored, entry }: ReadLogout): LogoutJob {
  const { id = decodeURIComponent(key), reason = 'destroyed', endedAt = endedAtOf(key) } = stored ?? {};
  return { entry: entry ?? { id, uid: '', reason, endedAt }, ...progressOf(stored ?? UNTRIED) };
}
