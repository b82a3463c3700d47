import TinyQueue from 'tinyqueue';
import {
  FORGOTTEN_AFTER_MS,
  type IndexedSession,
  type SessionIndex,
  type SessionIndexFactory,
  type SessionRemoval,
} from './session-index.js';

/** A session's place in the queue; void as soon as the session has another, or none. */
interface Place {
  readonly session: IndexedSession;
  /** When it runs out, or the claim of what has run out does. */
  readonly dueAt: number;
}

/** So many void places are never worth a new queue. */
const FEW = 64;

/** Knows the sessions of this process only: right for a host that runs as one process. */
export function memorySessionIndex(): SessionIndexFactory {
  return { open: () => new MemorySessionIndex() };
}

class MemorySessionIndex implements SessionIndex {
  readonly durable = false;
  readonly #places = new Map<string, Place>();
  readonly #hashes = new Map<string, Set<string>>();
  #queue = queueOf([]);

  put(session: IndexedSession): void {
    const { hash, uidHash, expiresAt } = session;
    const known = this.#places.get(hash);
    if (known) this.#drop(known);
    const long = Date.now() - FORGOTTEN_AFTER_MS;
    for (let next = this.#next(); next && next.dueAt <= long; next = this.#next()) this.#drop(next);
    this.#hashes.set(uidHash, (this.#hashes.get(uidHash) ?? new Set()).add(hash));
    this.#schedule({ session, dueAt: expiresAt });
  }

  renew(session: IndexedSession): void {
    if (this.#places.get(session.hash)?.session.uidHash === session.uidHash) this.put(session);
  }

  remove(hash: string, uidHash: string): SessionRemoval {
    const place = this.#places.get(hash);
    const removed = place?.session.uidHash === uidHash;
    if (removed) this.#drop(place);
    return { removed, others: this.#hasLive(uidHash) };
  }

  claimExpired(limit: number, leaseMs: number): readonly IndexedSession[] {
    const now = Date.now();
    const due: Place[] = [];
    for (let next = this.#next(); next && next.dueAt <= now && due.length < limit; next = this.#next()) {
      due.push(next);
      this.#queue.pop();
    }
    // Not before all are found: a lease of no time would be found again.
    for (const { session } of due) this.#schedule({ session, dueAt: now + leaseMs });
    return due.map(({ session }) => session);
  }

  #hasLive(uidHash: string): boolean {
    const now = Date.now();
    for (const hash of this.#hashes.get(uidHash) ?? []) {
      const place = this.#places.get(hash);
      if (place && place.session.expiresAt > now) return true;
    }
    return false;
  }

  #drop({ session: { hash, uidHash } }: Place): void {
    this.#places.delete(hash);
    const hashes = this.#hashes.get(uidHash);
    hashes?.delete(hash);
    if (hashes?.size === 0) this.#hashes.delete(uidHash);
  }

  #schedule(place: Place): void {
    this.#places.set(place.session.hash, place);
    this.#queue.push(place);
    // A rolling session takes a new place with each request, and its old ones would stay until their time has come.
    if (this.#queue.length > 2 * this.#places.size + FEW) this.#queue = queueOf([...this.#places.values()]);
  }

  /** The first place that is not void. */
  #next(): Place | undefined {
    for (let place = this.#queue.peek(); place; place = this.#queue.peek()) {
      if (this.#places.get(place.session.hash) === place) return place;
      this.#queue.pop();
    }
    return undefined;
  }
}

function queueOf(places: Place[]): TinyQueue<Place> {
  return new TinyQueue(places, (one, other) => (one.dueAt < other.dueAt ? -1 : 1));
}
