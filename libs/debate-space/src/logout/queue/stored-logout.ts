import {
  type FoundJob,
  type JobCodec,
  isReadable,
  readRecord,
  recordText,
  type RecordType,
  SteadyClock,
  type Storage,
  type Transaction,
} from 'durable-jobs';
import type { DeliveryProgress, LogoutContext, LogoutJob, FinishedEntry, Outcome } from '../logout.js';

/** What the storage keeps of a logout, in its job; the key of the job is the hash of the uid. */
interface StoredLogout extends DeliveryProgress, Pick<LogoutJob, 'retriedAt'> {
  readonly sealed: string;
  readonly reason: LogoutJob['entry']['reason'];
  readonly endedAt: number;
}

export const UNTRIED: DeliveryProgress = { attempts: 0, rejections: 0, cause: undefined };
export const UNREADABLE_HINT =
  'this logout cannot be read: its record is damaged, or was written by a newer version of nestjs-debate-space or with ' +
  'another storageKey. Run that version or restore that key and retry the logout, or discard it';

/** The id as a part of a key. It begins with `endedAt`, so that the order of the records is that of age. */
export const jobIdOf = (id: string): string => encodeURIComponent(id.toWellFormed());
export const endedAtOf = (jobId: string): number => Number(jobId.slice(0, 15));

export function progressOf({ attempts, rejections, cause }: DeliveryProgress): DeliveryProgress {
  return { attempts, rejections, cause };
}

export function logoutCodec({ uids }: LogoutContext): JobCodec<LogoutJob> {
  return {
    encode: ({ entry: { id, uid, reason, endedAt }, retriedAt, ...progress }, _id, uidHash): StoredLogout => {
      // As the hash was when the logout came: after a change of the storage key it would be another.
      const sealed = uids.seal(uid, { kind: 'logout', id, uidHash });
      return { reason, endedAt, sealed, retriedAt, ...progressOf(progress) };
    },
    decode: (stored, jobId, uidHash) => {
      if (!isLogout(stored)) return undefined;
      const id = decodeURIComponent(jobId);
      const uid = uids.open(stored.sealed, { kind: 'logout', id, uidHash });
      return uid === undefined || uid === '' ? undefined : jobOf(id, uid, stored);
    },
  };
}

/** What is known of a logout: one that cannot be read has no uid. */
export function logoutIn({ id, job, stored }: FoundJob<LogoutJob>): LogoutJob {
  if (job) return job.value;
  const { data = {} } = stored ?? {};
  const known = { reason: 'destroyed', endedAt: endedAtOf(id), ...UNTRIED } as const;
  return jobOf(decodeURIComponent(id), '', isLogout(data) ? data : known);
}

function jobOf(id: string, uid: string, logout: Omit<StoredLogout, 'sealed'>): LogoutJob {
  const { reason, endedAt, retriedAt } = logout;
  return { entry: { id, uid, reason, endedAt }, retriedAt, ...progressOf(logout) };
}

function isLogout(stored: object): stored is StoredLogout {
  const { sealed, reason, endedAt, attempts, rejections } = stored as Partial<Record<string, unknown>>;
  const texts = [sealed, reason].every((value) => typeof value === 'string');
  return texts && [endedAt, attempts, rejections].every((value) => typeof value === 'number');
}

export const HISTORY_FAMILY = 'logoutdone';

const DAY_MS = 86_400_000;
const BATCH = 500;
const MAX_BATCHES = 20;
const MAX_OF_USER_AND_DAY = 1_000;
const ALL = [`${HISTORY_FAMILY}:`, `${HISTORY_FAMILY};`] as const;
const FINISHED: RecordType<FinishedEntry> = {
  version: 1,
  key: ({ id }) => jobIdOf(id),
  indexes: () => [],
  isRecord: (value): value is FinishedEntry =>
    typeof (value as FinishedEntry).id === 'string' &&
    typeof (value as FinishedEntry).finishedAt === 'number',
};

/** The key of a row: one row serves both the history of a user, by day, and its removal, from the start. */
const dayOf = (at: number): string => `${ALL[0]}${digits(at / DAY_MS, 6)}:`;
const momentOf = (key: string): number => Number(key.split(':')[3]);
const idOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);

function digits(value: number, length: number): string {
  return String(Math.max(0, Math.floor(value))).padStart(length, '0');
}

/** What is kept of finished logouts, under the hash of the uid. It is removed within a day after its time. */
export class LogoutHistory {
  readonly #keepMs: number;
  readonly #clock: SteadyClock;

  /** @param maxRows how many are kept at most, for a storage in the memory of the process */
  constructor(
    private readonly storage: Storage,
    { keepFinishedMs }: LogoutContext,
    private readonly maxRows = Infinity,
  ) {
    this.#keepMs = keepFinishedMs;
    this.#clock = new SteadyClock(storage);
  }

  /** Notes the end of a logout in the transaction that removes it. */
  note(
    transaction: Pick<Transaction, 'set'>,
    uidHash: string,
    { entry: { id, reason, endedAt }, attempts }: Pick<LogoutJob, 'entry' | 'attempts'>,
    outcome: Outcome,
  ): void {
    if (this.#keepMs <= 0) return;
    const now = this.storage.now();
    const finished = { id, reason, endedAt, attempts, outcome, finishedAt: Date.now() };
    const key = `${dayOf(now)}${uidHash}:${digits(now, 15)}:${jobIdOf(id)}`;
    transaction.set(key, recordText(FINISHED, finished));
  }

  /** The earliest first. */
  async of(uidHash: string): Promise<readonly FinishedEntry[]> {
    const now = this.storage.now();
    const since = now - this.#keepMs;
    const days: number[] = [];
    for (let day = Math.floor(since / DAY_MS); day <= now / DAY_MS; day += 1) days.push(day * DAY_MS);
    const ranges = days.map(async (day) => {
      const prefix = `${dayOf(day)}${uidHash}`;
      return this.storage.range(`${prefix}:`, `${prefix};`, { limit: MAX_OF_USER_AND_DAY });
    });
    const rows = (await Promise.all(ranges)).flat().filter(([key]) => momentOf(key) > since);
    return rows.map(([key, text]) => readRecord(FINISHED, idOf(key), text)).filter(isReadable);
  }

  async prune(): Promise<void> {
    const [from, end] = ALL;
    const outdated = this.#clock.isSteady() ? dayOf(this.storage.now() - this.#keepMs) : from;
    for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
      const isFull = this.maxRows < Infinity && (await this.storage.count(HISTORY_FAMILY)) > this.maxRows;
      const rows = await this.storage.range(from, isFull ? end : outdated, { limit: BATCH });
      if (rows.length === 0) return;
      await this.storage.commit(new Map(), new Map(rows.map(([key]) => [key, undefined])));
    }
  }
}
