import { OutboxError } from '../../errors.js';
import type {
  DeliveryProgress,
  Outbox,
  OutboxContext,
  OutboxCounts,
  OutboxEntry,
  OutboxJob,
  Outcome,
  ParkedJob,
  UserHistory,
} from '../outbox.js';
import { openEntry, sealEntry } from '../sealed-entry.js';
import { DueEntries, oldestPending } from './due-entries.js';
import { FinishedLog } from './finished-log.js';
import { entryCount } from './lmdb-databases.js';
import { LmdbEntries, type Decide } from './lmdb-entries.js';
import type { LmdbFile } from './lmdb-file.js';
import { LmdbRecords } from './lmdb-records.js';
import { OutboxClock } from './outbox-clock.js';
import { SharedPause } from './shared-pause.js';
import { FRESH, type StoredEntry } from './stored-entry.js';
import { parkedJob, waitingJob } from './stored-views.js';

/** So often it is looked whether another process has left something to do. */
export const LOOK_AROUND_MS = 2_000;

/** The outbox in a file of this machine. Every promise is settled when the change is on the disk. */
export class LmdbOutbox implements Outbox {
  readonly engine = 'lmdb';
  readonly promise = 'what is recorded survives a crash, kill -9 and power loss of this machine';
  readonly durable = true;
  readonly records: LmdbRecords;
  readonly #file: LmdbFile;
  readonly #context: OutboxContext;
  readonly #clock: OutboxClock;
  readonly #entries: LmdbEntries;
  readonly #due: DueEntries;
  readonly #pause: SharedPause;
  readonly #finished: FinishedLog;
  readonly #lookAround: NodeJS.Timeout;
  #turns = 0;
  #changed: () => void = () => undefined;
  #closed: Promise<void> | undefined;

  constructor(file: LmdbFile, context: OutboxContext) {
    this.#file = file;
    this.records = new LmdbRecords(file);
    this.#context = context;
    this.#clock = new OutboxClock(file);
    this.#entries = new LmdbEntries(file, this.#clock);
    this.#due = new DueEntries(file, this.#entries, context);
    this.#pause = new SharedPause(file, this.#clock);
    this.#finished = new FinishedLog(file, this.#clock, context);
    const lookAround = (): void => {
      this.#finished.prune(); // in an application in which nothing ends any more
      this.#changed();
    };
    this.#lookAround = setInterval(context.contained, LOOK_AROUND_MS, lookAround).unref();
  }

  async hold(entry: OutboxEntry, leaseMs: number): Promise<void> {
    const uidHash = this.#context.uidHash(entry.uid);
    const sealed = sealEntry(entry, this.#context);
    await this.#change(entry.id, (before, { now }) => {
      if (before) return undefined;
      return { after: { ...FRESH, entry: sealed, uidHash, state: 'held', ...this.#at(now + leaseMs) } };
    });
    this.#changed();
  }

  async extend(id: string, leaseMs: number): Promise<void> {
    await this.#change(id, (before, { now }) => {
      if (before?.state !== 'held') return undefined;
      return { after: { ...before, ...this.#at(now + leaseMs) } };
    });
  }

  async release(id: string): Promise<void> {
    await this.#change(id, (before, { now }) => {
      if (before?.state !== 'held') return undefined;
      return { after: { ...before, state: 'pending', ...this.#at(now) } };
    });
    this.#changed();
  }

  async cancel(id: string): Promise<void> {
    await this.#change(id, (before) => (before?.state === 'held' ? {} : undefined));
  }

  async claim(limit: number, leaseMs: number): Promise<readonly OutboxJob[]> {
    this.#open();
    const { now } = this.#clock.read();
    if (this.#pause.until > now) return [];
    return this.#due.take(limit, now, (before) => {
      return { ...before, state: 'pending', ...this.#at(this.#clock.read().now + leaseMs) };
    });
  }

  async retry(id: string, progress: DeliveryProgress, delayMs: number): Promise<void> {
    await this.#change(id, (before, { now }) => {
      if (before?.state !== 'pending') return undefined;
      return { after: { ...before, ...FRESH, ...progress, ...this.#at(now + delayMs) } };
    });
    this.#changed();
  }

  async finish(id: string, attempts: number): Promise<void> {
    await this.#change(id, (before) => this.#end(before, 'delivered', attempts));
  }

  async park(id: string, progress: DeliveryProgress, cure: string): Promise<void> {
    await this.#change(id, (before, { now }) => {
      if (before?.state !== 'pending') return undefined;
      const parked = { cure, parkedAt: Date.now() };
      return { after: { ...before, ...FRESH, ...progress, state: 'parked', ...this.#at(now), parked } };
    });
  }

  async pause(ms: number): Promise<void> {
    this.#open();
    await this.#pause.extend(ms);
  }

  counts(): OutboxCounts {
    const { held, pending, parked } = this.#file.databases;
    return { held: entryCount(held), pending: entryCount(pending), parked: entryCount(parked) };
  }

  oldestPending(): number | undefined {
    return oldestPending(this.#file.databases);
  }

  nextDueMs(): number | undefined {
    const { firstAt } = this.#due;
    if (firstAt === undefined) return undefined;
    return Math.max(0, Math.max(firstAt, this.#pause.until) - this.#clock.read().now);
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  parked(limit: number, skip = 0): readonly ParkedJob[] {
    const keys = [...this.#file.databases.parked.getKeys({ limit, offset: skip })];
    return keys.flatMap(([, , id]) => parkedJob(this.#entries.get(id), this.#context));
  }

  async replay(id: string): Promise<boolean> {
    const replayed = await this.#change(id, (before, { now }) => {
      if (before?.state !== 'parked' || openEntry(before.entry, this.#context).uid === '') return undefined;
      return { after: { ...before, ...FRESH, state: 'pending', ...this.#at(now), parked: undefined } };
    });
    if (replayed) this.#changed();
    return replayed;
  }

  discard(id: string): Promise<boolean> {
    return this.#change(id, (before) =>
      before?.state === 'parked' ? this.#end(before, 'discarded', before.attempts) : undefined,
    );
  }

  ofUser(uid: string): UserHistory {
    const hash = this.#context.uidHash(uid);
    const { ahead } = this.#clock.read();
    const waiting = this.#idsOf(hash).flatMap((id) =>
      waitingJob(this.#entries.get(id), ahead, this.#context),
    );
    return { waiting, finished: this.#finished.of(hash) };
  }

  async supersede(uid: string, endedUntil: number): Promise<number> {
    this.#open();
    const superseded = await Promise.all(
      this.#idsOf(this.#context.uidHash(uid), endedUntil).map((id) =>
        this.#change(id, (before) =>
          before?.state === 'pending' ? this.#end(before, 'superseded', before.attempts) : undefined,
        ),
      ),
    );
    return superseded.filter(Boolean).length;
  }

  /** Waits for what is being written. Calls that come later fail with an {@link OutboxError}. */
  close(): Promise<void> {
    this.#changed = () => undefined;
    clearInterval(this.#lookAround);
    this.#closed ??= this.#entries.idle().then(() => this.#file.close());
    return this.#closed;
  }

  #open(): void {
    if (this.#closed) throw new OutboxError('The outbox is closed');
  }

  async #change(id: string, decide: Decide): Promise<boolean> {
    this.#open();
    return this.#entries.change(id, decide);
  }

  #end(before: StoredEntry | undefined, outcome: Outcome, attempts: number): ReturnType<Decide> {
    if (!before || before.state === 'unreadable') return undefined;
    this.#finished.prune();
    return { also: () => { this.#finished.add(before, outcome, attempts); } }; // prettier-ignore
  }

  #at(at: number): Pick<StoredEntry, 'at' | 'turn'> {
    this.#turns += 1;
    return { at, turn: this.#turns };
  }

  #idsOf(uidHash: string, endedUntil = Infinity): readonly string[] {
    const range = { start: [uidHash], end: [uidHash, endedUntil, '\uffff'] };
    return [...this.#file.databases.ofUser.getKeys(range)].map(([, , id]) => id);
  }
}
