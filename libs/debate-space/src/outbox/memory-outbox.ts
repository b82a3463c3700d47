import TinyQueue from 'tinyqueue';
import { finishedEntry, FinishedEntries } from './finished-entries.js';
import type {
  DeliveryProgress,
  Outbox,
  LogoutContext,
  LogoutCounts,
  LogoutEntry,
  LogoutJob,
  Outcome,
  ParkedJob,
  UserHistory,
  WaitingJob,
} from './outbox.js';

interface Stored {
  readonly entry: LogoutEntry;
  progress: DeliveryProgress;
  state: keyof LogoutCounts;
  /** Whether somebody has claimed it and not said what came of it. */
  underWay: boolean;
  /** Both by `performance.now()`: the machine's clock may jump. */
  dueAt: number;
  /** Changes with each new due time; an older place in the queue is void. */
  turn: number;
  parked?: { readonly hint: string; readonly parkedAt: number };
}

interface Place {
  readonly at: number;
  readonly turn: number;
  readonly id: string;
}

const FRESH: DeliveryProgress = { attempts: 0, rejections: 0 };
/** So many void places are never worth a new queue. */
const FEW = 1024;
const queueOf = (places: Place[] = []) =>
  new TinyQueue<Place>(places, (one, other) => one.at - other.at || one.turn - other.turn);
const ageOf = ({ entry: { id, endedAt } }: Stored): Place => ({ at: endedAt, turn: 0, id });
const isIdle = ({ state, underWay }: Stored): boolean => state !== 'parked' && !underWay;

/** Logouts in the memory of this process: what stands in while the storage does not take them. */
export class MemoryOutbox implements Outbox {
  readonly engine = 'memory';
  readonly promise = 'a crash or a kill loses the logouts that are not delivered yet';
  readonly durable = false;
  readonly #stored = new Map<string, Stored>();
  readonly #ofUser = new Map<string, Set<string>>();
  readonly #counts = { held: 0, pending: 0, parked: 0 };
  readonly #due = queueOf();
  #byAge = queueOf();
  readonly #finished: FinishedEntries;
  #pausedUntil = 0;
  #turns = 0;
  #changed: () => void = () => undefined;

  constructor(context: LogoutContext) {
    this.#finished = new FinishedEntries(context);
  }

  hold(entry: LogoutEntry, leaseMs: number): void {
    if (this.#stored.has(entry.id)) return;
    const stored: Stored = { entry, progress: FRESH, state: 'held', underWay: false, dueAt: 0, turn: 0 };
    this.#stored.set(entry.id, stored);
    this.#counts.held += 1;
    this.#ofUser.set(entry.uid, (this.#ofUser.get(entry.uid) ?? new Set()).add(entry.id));
    this.#schedule(stored, leaseMs);
  }

  extend(id: string, leaseMs: number): void {
    const stored = this.#in('held', id);
    if (stored) this.#schedule(stored, leaseMs);
  }

  release(id: string): void {
    const stored = this.#in('held', id);
    if (!stored) return;
    this.#pend(stored);
    this.#schedule(stored, 0);
  }

  cancel(id: string): void {
    const stored = this.#in('held', id);
    if (stored) this.#remove(stored);
  }

  claim(limit: number, leaseMs: number): readonly LogoutJob[] {
    const now = performance.now();
    const jobs: LogoutJob[] = [];
    if (this.#pausedUntil > now) return jobs;
    for (let due = this.#next(); due && jobs.length < limit && due.at <= now; due = this.#next()) {
      const stored = this.#stored.get(due.id);
      if (!stored) continue;
      if (stored.state === 'held') this.#pend(stored);
      this.#schedule(stored, leaseMs);
      stored.underWay = true;
      jobs.push({ entry: stored.entry, ...stored.progress });
    }
    return jobs;
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): void {
    const stored = this.#in('pending', id);
    if (!stored) return;
    stored.progress = progress;
    this.#schedule(stored, delayMs);
  }

  finish(id: string, attempts: number): void {
    const stored = this.#stored.get(id);
    if (stored) this.#end(stored, 'delivered', attempts);
  }

  park(id: string, progress: DeliveryProgress, hint: string): void {
    const stored = this.#in('pending', id);
    if (!stored) return;
    stored.progress = progress;
    stored.parked = { hint, parkedAt: Date.now() };
    stored.turn = -1;
    stored.underWay = false;
    this.#move(stored, 'parked');
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
  }

  counts(): LogoutCounts {
    return { ...this.#counts };
  }

  oldestPending(): number | undefined {
    for (let oldest = this.#byAge.peek(); oldest; oldest = this.#byAge.peek()) {
      if (this.#in('pending', oldest.id)) return oldest.at;
      this.#byAge.pop();
    }
    return undefined;
  }

  nextDueMs(): number | undefined {
    const due = this.#next();
    return due && Math.max(0, due.at - performance.now(), this.#pausedUntil - performance.now());
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  parked(limit: number, skip = 0): readonly ParkedJob[] {
    return [...this.#stored.values()]
      .flatMap(({ entry, progress, parked }) => (parked ? [{ entry, ...progress, ...parked }] : []))
      .sort((one, other) => one.parkedAt - other.parkedAt)
      .slice(skip, skip + limit);
  }

  retryParked(id: string): boolean {
    const stored = this.#in('parked', id);
    if (!stored) return false;
    delete stored.parked;
    stored.progress = FRESH;
    this.#pend(stored);
    this.#schedule(stored, 0);
    return true;
  }

  discard(id: string): boolean {
    const stored = this.#in('parked', id);
    if (stored) this.#end(stored, 'discarded', stored.progress.attempts);
    return stored !== undefined;
  }

  ofUser(uid: string): UserHistory {
    const skew = Date.now() - performance.now();
    const waiting = this.#storedOf(uid).map(({ entry, progress, state, dueAt, parked }): WaitingJob => {
      return { entry, ...progress, state, ...(parked ? { hint: parked.hint } : { dueAt: dueAt + skew }) };
    });
    return { waiting, finished: this.#finished.of(uid) };
  }

  supersede(uid: string, endedUntil: number): number {
    const superseded = this.#storedOf(uid).filter(
      ({ state, entry }) => state === 'pending' && entry.endedAt <= endedUntil,
    );
    for (const stored of superseded) this.#end(stored, 'superseded', stored.progress.attempts);
    return superseded.length;
  }

  has(id: string): boolean {
    return this.#stored.has(id);
  }

  /** For how long nothing is given out. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - performance.now());
  }

  /** Those that wait, and nobody is delivering. */
  idle(): readonly LogoutEntry[] {
    return [...this.#stored.values()].flatMap((stored) => (isIdle(stored) ? [stored.entry] : []));
  }

  /** Gives away an entry that is idle. @returns where it stood; `undefined` when there is none */
  take(id: string): keyof LogoutCounts | undefined {
    const stored = this.#stored.get(id);
    if (!stored || !isIdle(stored)) return undefined;
    this.#remove(stored);
    return stored.state;
  }

  close(): void {
    this.#changed = () => undefined;
  }

  #in(state: keyof LogoutCounts, id: string): Stored | undefined {
    const stored = this.#stored.get(id);
    return stored?.state === state ? stored : undefined;
  }

  #storedOf(uid: string): readonly Stored[] {
    return [...(this.#ofUser.get(uid) ?? [])].flatMap((id) => this.#stored.get(id) ?? []);
  }

  #pend(stored: Stored): void {
    this.#move(stored, 'pending');
    this.#byAge.push(ageOf(stored));
    // Those that are over lie behind the oldest that is not.
    if (this.#byAge.length > 2 * this.#counts.pending + FEW) {
      const pending = [...this.#stored.values()].filter(({ state }) => state === 'pending');
      this.#byAge = queueOf(pending.map(ageOf));
    }
  }

  #move(stored: Stored, state: keyof LogoutCounts): void {
    this.#counts[stored.state] -= 1;
    this.#counts[state] += 1;
    stored.state = state;
  }

  #end(stored: Stored, outcome: Outcome, attempts: number): void {
    this.#remove(stored);
    this.#finished.add(stored.entry.uid, finishedEntry(stored.entry, outcome, attempts));
  }

  #remove({ entry: { id, uid }, state }: Stored): void {
    this.#stored.delete(id);
    this.#counts[state] -= 1;
    const ids = this.#ofUser.get(uid);
    ids?.delete(id);
    if (ids?.size === 0) this.#ofUser.delete(uid);
  }

  #schedule(stored: Stored, delayMs: number): void {
    stored.underWay = false;
    stored.turn = this.#turns += 1;
    stored.dueAt = performance.now() + delayMs;
    this.#due.push({ at: stored.dueAt, turn: stored.turn, id: stored.entry.id });
    this.#changed();
  }

  /** The earliest place that is not void. */
  #next(): Place | undefined {
    for (let due = this.#due.peek(); due; due = this.#due.peek()) {
      if (this.#stored.get(due.id)?.turn === due.turn) return due;
      this.#due.pop();
    }
    return undefined;
  }
}
