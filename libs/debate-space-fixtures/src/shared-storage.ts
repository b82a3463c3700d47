import { setImmediate as nextTick } from 'node:timers/promises';
import { QUEUE_FAMILIES } from '../../debate-space/src/logout/queue/logout-queue.js';
import { StorageError } from '../../debate-space/src/errors.js';
import type { Storage, StorageRow, StorageValues } from 'durable-jobs';
import { openMemory } from './outbox-engines.js';

export type Outcome = 'made' | 'not made';
interface Call {
  readonly method: 'get' | 'range' | 'count' | 'commit';
  readonly limit?: number;
  readonly changes: number;
}

/** A storage in memory that several processes share, with a clock and failures of the test. */
export class SharedStorage implements Storage {
  readonly #room = openMemory();
  calls: Call[] = [];
  isAsynchronous = false;
  time = 1_800_000_000_000;
  /** What becomes of the next commits, whose caller hears only that they failed. */
  readonly unknown: Outcome[] = [];
  /** Runs once, between the reads of a call and its next commit. */
  beforeCommit: (() => unknown) | undefined;

  readonly get = (keys: readonly string[]) => this.#call({ method: 'get' }, () => this.#room.get(keys));
  readonly range: Storage['range'] = (from, to, options) =>
    this.#call({ method: 'range', limit: options.limit }, () => this.#room.range(from, to, options));
  readonly count = (family: string) => this.#call({ method: 'count' }, () => this.#room.count(family));
  readonly now = (): number => this.time;
  readonly close = (): void => undefined;

  commit(checks: StorageValues, changes: StorageValues): boolean | Promise<boolean> {
    const commit = (): boolean | Promise<boolean> => {
      const outcome = this.unknown.shift();
      const isMade = outcome !== 'not made' && this.#room.commit(checks, changes);
      if (outcome) throw new StorageError('No answer');
      return isMade;
    };
    return this.#call({ method: 'commit', changes: changes.size }, () => {
      const before = this.beforeCommit;
      this.beforeCommit = undefined;
      return before ? Promise.resolve(before()).then(commit) : commit();
    });
  }

  rows(family: string): readonly StorageRow[] {
    return this.#room.range(`${family}:`, `${family}:~`, { limit: Infinity }) as readonly StorageRow[];
  }

  /** All but the history. */
  left(): readonly StorageRow[] {
    return QUEUE_FAMILIES.filter((family) => family !== 'logoutdone').flatMap((family) => this.rows(family));
  }

  /** Changes a record past the queue. */
  put(key: string, value: string): void {
    void this.#room.commit(new Map(), new Map([[key, value]]));
  }

  #call<T>(call: Omit<Call, 'changes'> & Partial<Call>, work: () => T): T {
    this.calls.push({ changes: 0, ...call });
    return this.isAsynchronous ? (nextTick().then(work) as T) : work();
  }
}
