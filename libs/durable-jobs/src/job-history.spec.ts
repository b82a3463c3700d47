import { afterAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LEASE_MS } from './job-kind.js';
import { jobFamilies, type Job } from './job-records.js';
import { JobStore } from './job-store.js';
import { lmdbStorage } from './lmdb.js';
import { memoryStorage } from './memory.js';
import { StorageError, type Storage, type StorageEngine } from './storage.js';
import { transact } from './transaction.js';

const FAMILIES = jobFamilies('mail');
const STEPS = 400;
const IDS = 12;
const GROUPS = ['', 'a/', 'b/'];
const SEEDS = [1, 2, 3, 4, 5, 6];

/** A random number from 0 to 1, the same ones for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What a job must be by now. `unknown`: a call about it had an unknown outcome, and only the storage knows. */
type Expected = 'pending' | 'parked' | 'gone' | 'unknown';

/** Several processes that do what comes to their minds, and what must have come of it. */
class History {
  readonly #random: () => number;
  readonly #storage: Storage;
  readonly #stores: readonly JobStore<number>[];
  readonly #expected = new Map<string, Expected>();
  /** Who has which job, until when. */
  readonly #leases = new Map<string, { readonly by: number; readonly until: number }>();
  readonly #claims: { readonly by: number; readonly claim: Job<number> }[] = [];
  /** Who has added which job with an unknown outcome. */
  readonly #unsure = new Set<string>();
  #skewMs = 0;
  #failing = 0;
  /** Every call, for the message of a failure. */
  readonly calls: string[] = [];

  constructor(storage: Storage, seed: number, processes: number) {
    this.#random = randomOf(seed);
    const commit: Storage['commit'] = async (checks, changes) => {
      const isLost = this.#random() < this.#failing;
      const isMade = isLost && this.#random() < 0.5 ? false : await storage.commit(checks, changes);
      if (isLost) throw new StorageError('No answer');
      return isMade;
    };
    this.#storage = Object.assign(Object.create(storage) as Storage, {
      get: storage.get.bind(storage),
      range: storage.range.bind(storage),
      count: storage.count.bind(storage),
      now: () => storage.now() + this.#skewMs,
      commit,
    });
    const codec = {
      encode: (value: number) => ({ value }),
      decode: (stored: object) => (stored as { value: number }).value,
    };
    const options = { name: 'mail', codec, unreadableHint: 'cannot be read' };
    this.#stores = Array.from({ length: processes }, () => new JobStore(this.#storage, options));
  }

  async run(): Promise<void> {
    this.#failing = 0.1;
    for (let step = 0; step < STEPS; step += 1) await this.#step();
    this.#failing = 0;
    await this.#finishAll();
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#random() * all.length)] as T;
  }

  #storeOf(by: number): JobStore<number> {
    const store = this.#stores[by];
    if (!store) throw new Error('no such process');
    return store;
  }

  #note(id: string, expected: Expected): void {
    this.#expected.set(id, expected);
  }

  /** Does a call about a job. @param isMade what it is afterwards, if the call was made */
  async #about(id: string, call: () => unknown, ifMade: Expected): Promise<void> {
    const before = this.#expected.get(id) ?? 'gone';
    try {
      const isMade = await call();
      if (isMade === true) this.#note(id, ifMade);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#note(id, before === ifMade ? before : 'unknown');
    }
  }

  async #step(): Promise<void> {
    const by = Math.floor(this.#random() * this.#stores.length);
    const store = this.#storeOf(by);
    const id = `${this.#pick(GROUPS)}${Math.floor(this.#random() * IDS)}`;
    const call = this.#pick(['add', 'add', 'claim', 'claim', 'end', 'end', 'end', 'wait', 'desk', 'group']);
    if (call === 'add') await this.#add(store, by, id);
    else if (call === 'claim') await this.#claim(store, by);
    else if (call === 'end') await this.#end();
    else if (call === 'wait') this.#skewMs += Math.floor(this.#random() * LEASE_MS);
    else if (call === 'desk') await this.#desk(store, id);
    else await this.#group(store);
  }

  async #add(store: JobStore<number>, by: number, id: string): Promise<void> {
    const before = this.#expected.get(id) ?? 'gone';
    this.calls.push(`add ${id} (${before})`);
    try {
      await store.add([{ id, key: 'user', value: this.calls.length }]);
      // The repetition of an addition with an unknown outcome: it may have been made, and the job been finished since.
      if (before === 'gone') this.#note(id, this.#unsure.delete(`${by} ${id}`) ? 'unknown' : 'pending');
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#unsure.add(`${by} ${id}`);
      if (before === 'gone') this.#note(id, 'unknown');
    }
  }

  async #claim(store: JobStore<number>, by: number): Promise<void> {
    const claims = await store.claim(1 + Math.floor(this.#random() * 4)).catch(() => []);
    const now = this.#storage.now();
    for (const claim of claims) {
      this.calls.push(`claim ${claim.id} by ${by}`);
      const { id } = claim;
      const lease = this.#leases.get(id);
      expect([this.#expected.get(id), id]).not.toEqual(['gone', id]);
      expect([this.#expected.get(id), id]).not.toEqual(['parked', id]);
      if (lease && lease.until > now + 50) expect([id, lease.by, 'has it']).toEqual([id, undefined, '']);
      this.#leases.set(id, { by, until: now + LEASE_MS });
      this.#claims.push({ by, claim });
      this.#note(id, 'pending');
    }
  }

  /** A claim comes to its end, in time or not. */
  async #end(): Promise<void> {
    const [one] = this.#claims.splice(Math.floor(this.#random() * this.#claims.length), 1);
    if (!one) return;
    const { by, claim } = one;
    const store = this.#storeOf(by);
    const how = this.#pick(['finish', 'retry', 'park', 'give back', 'renew', 'die']);
    this.calls.push(`${how} ${claim.id} by ${by}`);
    if (how === 'die') return;
    if (how === 'renew') {
      await store.renew([claim]).catch(() => undefined);
      if (store.isHeld(claim)) this.#leases.set(claim.id, { by, until: this.#storage.now() });
      this.#claims.push(one);
      return;
    }
    this.#leases.delete(claim.id);
    if (how === 'finish') await this.#about(claim.id, () => store.finish(claim), 'gone');
    else if (how === 'park') await this.#about(claim.id, () => store.park(claim, 'a hint'), 'parked');
    else if (how === 'retry') await this.#about(claim.id, () => store.retry(claim, 100), 'pending');
    else await store.giveBack([claim]).catch(() => undefined);
  }

  async #desk(store: JobStore<number>, id: string): Promise<void> {
    const isRemoved = this.#random() < 0.5;
    this.calls.push(`${isRemoved ? 'remove' : 'retry parked'} ${id}`);
    if (isRemoved) this.#leases.delete(id);
    if (isRemoved) await this.#about(id, () => store.remove(id), 'gone');
    else await this.#about(id, () => store.retryParked(id), 'pending');
  }

  async #group(store: JobStore<number>): Promise<void> {
    const group = this.#pick(['a', 'b']);
    const isPaused = this.#random() < 0.5;
    this.calls.push(`${isPaused ? 'pause' : 'resume'} ${group}`);
    await transact(this.#storage, (transaction) =>
      isPaused ? store.pauseGroupIn(transaction, group) : store.resumeGroupIn(transaction, group),
    ).catch(() => undefined);
  }

  /** Everything that was accepted is there, once; and when all of it is done, nothing is left. */
  async #finishAll(): Promise<void> {
    const store = new JobStore<number>(this.#storage, {
      name: 'mail',
      codec: {
        encode: (value) => ({ value }),
        decode: (stored) => (stored as { value: number }).value,
      },
      unreadableHint: 'cannot be read',
    });
    for (const group of ['a', 'b'])
      await transact(this.#storage, (transaction) => store.resumeGroupIn(transaction, group));
    this.#skewMs += 10 * LEASE_MS;
    for (const { id } of await store.list('parked', { limit: 100 })) {
      expect(['parked', 'unknown']).toContain(this.#expected.get(id));
      this.#note(id, 'pending');
      expect(await store.retryParked(id)).toBe(true);
    }
    const done: string[] = [];
    for (;;) {
      const claims = await store.claim(5);
      if (claims.length === 0) break;
      for (const claim of claims) {
        done.push(claim.id);
        expect(await store.finish(claim)).toBe(true);
      }
    }
    expect(new Set(done).size).toBe(done.length);
    const wanted = [...this.#expected].filter(([, expected]) => expected === 'pending').map(([id]) => id);
    expect(wanted.filter((id) => !done.includes(id))).toEqual([]);
    for (const id of done) expect([id, this.#expected.get(id)]).not.toEqual([id, 'gone']);
    for (const family of FAMILIES)
      expect(await this.#storage.range(`${family}:`, `${family};`, { limit: 10 })).toEqual([]);
  }
}

describe.each(['memory', 'lmdb'])('a random history of the jobs in %s', (name) => {
  const folders: string[] = [];
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

  it.each(SEEDS)(
    'with the seed %i loses no job, works none twice at a time and leaves nothing',
    async (seed) => {
      let engine: StorageEngine = memoryStorage();
      if (name === 'lmdb') {
        const folder = await mkdtemp(join(tmpdir(), 'jobs-'));
        folders.push(folder);
        engine = lmdbStorage({ path: folder });
      }
      const contained = (work: () => void): void => {
        work();
      };
      const storage = await engine.open({ namespace: 'app', families: FAMILIES, contained });
      const history = new History(storage, seed, 3);
      try {
        await history.run();
      } catch (error) {
        throw new Error(`after: ${history.calls.slice(-40).join(', ')}`, { cause: error });
      } finally {
        await storage.close();
      }
    },
  );
});
