import type { OutboxContext, OutboxJob } from '../outbox.js';
import { openEntry, UNREADABLE_CURE } from '../sealed-entry.js';
import type { LmdbDatabases, Place } from './lmdb-databases.js';
import type { Decide, LmdbEntries } from './lmdb-entries.js';
import type { LmdbFile } from './lmdb-file.js';
import type { StoredEntry } from './stored-entry.js';

interface Candidate {
  readonly place: Place;
  readonly from: 'held' | 'pending';
}

/** What is due or will be: the pending entries, and the held ones whose process must have died by then. */
export class DueEntries {
  readonly #file: LmdbFile;
  readonly #entries: LmdbEntries;
  readonly #context: OutboxContext;

  constructor(file: LmdbFile, entries: LmdbEntries, context: OutboxContext) {
    this.#file = file;
    this.#entries = entries;
    this.#context = context;
  }

  /** When the first is due. */
  get firstAt(): number | undefined {
    return this.#candidates(1)[0]?.place[0];
  }

  /**
   * Takes at most so many of those that are due.
   * @param lease what becomes of one that is taken
   */
  async take(
    limit: number,
    now: number,
    lease: (before: StoredEntry) => StoredEntry,
  ): Promise<readonly OutboxJob[]> {
    const jobs: OutboxJob[] = [];
    while (jobs.length < limit) {
      const candidates = this.#candidates(limit - jobs.length).filter(({ place: [at] }) => at <= now);
      if (candidates.length === 0) break;
      const taken = await Promise.all(candidates.map((candidate) => this.#takeOne(candidate, lease)));
      jobs.push(...taken.filter((job) => job !== undefined));
    }
    return jobs;
  }

  async #takeOne(
    { place, from }: Candidate,
    lease: (before: StoredEntry) => StoredEntry,
  ): Promise<OutboxJob | undefined> {
    const [at, turn, id] = place;
    let job: OutboxJob | undefined;
    const decide: Decide = (before, { now }) => {
      job = undefined;
      const also = () => void this.#file.databases[from].remove(place);
      // It has no entry, or leads to one that cannot be read: neither may keep the others waiting.
      if (!before) return { also };
      const isHere = before.state === from && before.at === at && before.turn === turn;
      if (before.state !== 'unreadable' && !isHere) {
        return this.#file.databases[from].doesExist(place) ? { after: before, also } : undefined;
      }
      const { attempts, rejections, cause } = before;
      const entry = openEntry(before.entry, this.#context);
      if (entry.uid === '') {
        const parked = { cure: UNREADABLE_CURE, parkedAt: Date.now() };
        return { after: { ...before, state: 'parked', at: now, parked }, also };
      }
      job = { entry, attempts, rejections, cause };
      return { after: lease(before) };
    };
    await this.#entries.change(id, decide);
    return job;
  }

  /** The earliest of both. */
  #candidates(limit: number): readonly Candidate[] {
    const { databases } = this.#file;
    const first = (from: 'held' | 'pending'): Candidate[] =>
      [...databases[from].getKeys({ limit })].map((place) => ({ place, from }));
    return [...first('held'), ...first('pending')]
      .sort(({ place: one }, { place: other }) => one[0] - other[0] || one[1] - other[1])
      .slice(0, limit);
  }
}

/** `endedAt` of the oldest that is pending. */
export function oldestPending({ pendingByAge }: LmdbDatabases): number | undefined {
  return [...pendingByAge.getKeys({ limit: 1 })][0]?.[0];
}
