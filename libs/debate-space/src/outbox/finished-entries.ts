import { LRUCache } from 'lru-cache';
import type { FinishedEntry, OutboxContext, OutboxEntry, Outcome } from './outbox.js';

const MOST_USERS = 10_000;
const MOST_OF_ONE = 100;

/** What a process remembers of the entries that are over, by the hash of their uid. */
export class FinishedEntries {
  readonly #uidHash: (uid: string) => string;
  readonly #keepMs: number;
  readonly #entries: LRUCache<string, readonly FinishedEntry[]>;

  constructor({ uids, keepFinishedMs }: OutboxContext) {
    this.#uidHash = (uid) => uids.hash(uid);
    this.#keepMs = keepFinishedMs;
    this.#entries = new LRUCache({ max: MOST_USERS });
  }

  add(uid: string, finished: FinishedEntry): void {
    if (this.#keepMs > 0)
      this.#entries.set(this.#uidHash(uid), [...this.of(uid).slice(1 - MOST_OF_ONE), finished]);
  }

  /** The earliest first. */
  of(uid: string): readonly FinishedEntry[] {
    const since = Date.now() - this.#keepMs;
    return (this.#entries.get(this.#uidHash(uid)) ?? []).filter(({ finishedAt }) => finishedAt > since);
  }
}

export function finishedEntry(
  { id, reason, endedAt }: Omit<OutboxEntry, 'uid'>,
  outcome: Outcome,
  attempts: number,
): FinishedEntry {
  return { id, reason, endedAt, attempts, outcome, finishedAt: Date.now() };
}
