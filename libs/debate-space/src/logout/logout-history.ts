import type { FinishedEntry, LogoutContext, Outcome } from '../logout/logout.js';
import { SteadyClock } from '../storage/steady-clock.js';
import type { DebateSpaceStorage, StorageRow } from '../storage/storage.js';
import { daysBetween, doneAtOf, doneDay, doneKey, donePrefix, endOf } from './queue-keys.js';
import { all, wait, type Steps } from './steps.js';
import type { StoredLogout } from './stored-logout.js';

const BATCH = 500;
const MAX_BATCHES = 20;
const MAX_OF_USER_AND_DAY = 1_000;

/** What is kept of finished logouts, under the hash of the uid. It is removed within a day after its time. */
export class LogoutHistory {
  readonly #storage: DebateSpaceStorage;
  readonly #keepMs: number;
  readonly #maxRows: number;
  readonly #clock: SteadyClock;

  /** @param maxRows how many are kept at most, for a storage in the memory of the process */
  constructor(storage: DebateSpaceStorage, { keepFinishedMs }: LogoutContext, maxRows = Infinity) {
    this.#storage = storage;
    this.#keepMs = keepFinishedMs;
    this.#maxRows = maxRows;
    this.#clock = new SteadyClock(storage);
  }

  /** The rows to write with the change that ends the logout. */
  rows(
    queueId: string,
    { id, reason, endedAt, uidHash }: StoredLogout,
    outcome: Outcome,
    attempts: number,
  ): readonly StorageRow[] {
    if (this.#keepMs <= 0) return [];
    const now = this.#storage.now();
    const finished: FinishedEntry = { id, reason, endedAt, attempts, outcome, finishedAt: Date.now() };
    return [[doneKey(now, uidHash, queueId), JSON.stringify(finished)]];
  }

  /** The earliest first. */
  *of(uidHash: string): Steps<readonly FinishedEntry[]> {
    const now = this.#storage.now();
    const since = now - this.#keepMs;
    const ranges = daysBetween(since, now).map((day) => {
      const prefix = donePrefix(day, uidHash);
      return this.#storage.range(prefix, endOf(prefix), { limit: MAX_OF_USER_AND_DAY });
    });
    const rows = (yield* wait(all(ranges))).flat();
    return rows.flatMap(([key, text]) => (doneAtOf(key) > since ? finishedEntry(text) : []));
  }

  *prune(): Steps<void> {
    const now = this.#storage.now();
    const outdated = this.#clock.isSteady() ? doneDay(now - this.#keepMs) : 'done:';
    for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
      const isFull = this.#maxRows < Infinity && (yield* wait(this.#storage.count('done'))) > this.#maxRows;
      const to = isFull ? endOf('done:') : outdated;
      const rows = yield* wait(this.#storage.range('done:', to, { limit: BATCH }));
      if (rows.length === 0) return;
      yield* wait(this.#storage.commit(new Map(), new Map(rows.map(([key]) => [key, undefined]))));
    }
  }
}

/** Nothing for a row that is damaged. */
function finishedEntry(text: string): readonly FinishedEntry[] {
  try {
    const finished = JSON.parse(text) as Partial<FinishedEntry> | null;
    return typeof finished?.finishedAt === 'number' ? [finished as FinishedEntry] : [];
  } catch {
    return [];
  }
}
