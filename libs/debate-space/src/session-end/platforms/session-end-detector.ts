import { setTimeout as pause } from 'node:timers/promises';
import { Containment } from '../../async/containment.js';
import type { Emit } from '../../events.js';
import type { SessionCookie, SessionStore, SessionUid } from '../session-options.js';
import { withTimeout } from '../../async/with-timeout.js';
import { CookieSessions } from '../cookies/cookie-sessions.js';
import { defaultSessionUid } from '../default-session-uid.js';
import type { DetectorContext } from '../verdict/detector-context.js';
import type { EndRecorder } from '../verdict/end-recorder.js';
import { sweepExpired } from '../expiry/expiry-sweep.js';
import { UnwatchableStoreError } from '../stores/patch-store.js';
import { OpenWaits } from '../../async/open-waits.js';
import { PendingTasks } from '../../async/pending-tasks.js';
import { RegistryWriter, type FoundSession, type SessionIndexing } from '../expiry/registry-writer.js';
import { OpenRequests } from '../verdict/open-requests.js';
import { SetupWarnings } from '../setup-warnings.js';
import { WatchedStore } from '../stores/watched-store.js';

export interface DetectorOptions {
  readonly uid: SessionUid;
  readonly graceMs: number;
  /** The stores to watch. @defaultValue every store that the requests bring along */
  readonly store?: SessionStore | readonly SessionStore[] | undefined;
  /** @defaultValue none */
  readonly cookies?: readonly SessionCookie[];
  /** For the policy `last`, and for expiry: where live sessions are registered. @defaultValue nowhere */
  readonly indexing?: SessionIndexing | undefined;
}

/** A look at expired sessions that is under way may end; what is left has been claimed, and will be again. */
const STOP_WITHIN_MS = 1_000;

/** Watches session stores, and cookies that are sessions, for users whose session ends. */
export class SessionEndDetector {
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  readonly cookies: CookieSessions;
  /** The stores of the host's options; none: every store that the requests bring along is watched. */
  readonly givenStores: readonly SessionStore[];
  readonly #context: DetectorContext & { readonly registryWriter: RegistryWriter | undefined };
  readonly #indexing: SessionIndexing | undefined;
  readonly #emit: Emit;
  readonly #stores = new Map<object, WatchedStore>();
  /** The same by the prototype that each store has got: that of a Proxy is its target's. */
  #byPrototype = new WeakMap<object, WatchedStore>();
  readonly #shutdown = new AbortController();
  #sweeping: Promise<void> | undefined;
  readonly #unwatchable = new WeakSet<object>();
  /** Whether there is a store that cannot be watched. */
  #isBlind = false;

  constructor(recorder: EndRecorder, options: DetectorOptions, emit: Emit) {
    const { uid, graceMs, store, cookies = [], indexing } = options;
    const containment = new Containment(emit);
    const warnings = new SetupWarnings(emit, uid !== defaultSessionUid);
    const tasks = new PendingTasks();
    const find = this.#find.bind(this);
    const registryWriter = indexing && new RegistryWriter(indexing, { containment, recorder, tasks, find });
    const openRequests = new OpenRequests(containment, indexing?.lastOnly === true);
    const shared = { recorder, uid, graceMs, containment, warnings, registryWriter, openRequests };
    this.#context = { ...shared, tasks, waits: new OpenWaits() };
    this.containment = containment;
    this.warnings = warnings;
    this.cookies = new CookieSessions(cookies, this.#context);
    this.givenStores = [store ?? []].flat();
    this.#indexing = indexing;
    this.#emit = emit;
  }

  /** The requests under way that may log a user in. */
  get openRequests(): OpenRequests {
    return this.#context.openRequests;
  }

  /** The stores that are watched. */
  get stores(): ReadonlyMap<object, WatchedStore> {
    return this.#stores;
  }

  /** How a store is watched, or the one behind a Proxy. */
  watchedStore(store: object): WatchedStore | undefined {
    return this.#stores.get(store) ?? this.#byPrototype.get(Reflect.getPrototypeOf(store) ?? store);
  }

  /** Begins to look for sessions that have expired, if the host wants that. */
  start(): void {
    if (this.#indexing?.sweepMs !== undefined)
      this.#sweeping ??= this.#sweep(this.#indexing, this.#indexing.sweepMs);
  }

  /**
   * Watches a store from now on. Never throws.
   * @returns whether it was not watched before
   */
  watch(store: object): boolean {
    const isKnown = this.watchedStore(store) !== undefined || this.#unwatchable.has(store);
    if (isKnown || this.#shutdown.signal.aborted) return false;
    const name = storeName(store);
    try {
      const watched = new WatchedStore(store, this.#context);
      this.#stores.set(store, watched);
      this.#byPrototype.set(Reflect.getPrototypeOf(store) ?? store, watched);
      this.#emit({ type: 'session-store-found', store: name });
      return true;
    } catch (error) {
      this.#isBlind = true;
      this.#unwatchable.add(store);
      this.containment.report('session store', error);
      if (error instanceof UnwatchableStoreError)
        this.warnings.warn('store-not-watchable', `${name} cannot be watched, because its ${error.part}`);
      return false;
    }
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#shutdown.abort();
    this.#context.waits.close();
    const swept = withTimeout(this.#sweeping ?? Promise.resolve(), STOP_WITHIN_MS, undefined);
    await this.#context.tasks.onIdle();
    for (const watched of this.#stores.values()) watched.release();
    this.#stores.clear();
    this.#byPrototype = new WeakMap();
    await swept;
  }

  async #sweep(indexing: SessionIndexing, sweepMs: number): Promise<void> {
    const { signal } = this.#shutdown;
    const context = { ...this.#context, ...indexing, sweepMs, find: this.#find.bind(this) };
    while (!signal.aborted) {
      await sweepExpired(context);
      await pause(sweepMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Ids are not to be guessed, so whichever store has it has the right one. */
  async #find(sid: string): Promise<readonly FoundSession[]> {
    // What is not in the stores that can be asked may be in another.
    if (this.#isBlind || this.#stores.size === 0) throw new Error('not every store can be asked');
    const found = await Promise.all([...this.#stores.values()].map(({ reader }) => reader.find(sid)));
    return found.filter((session) => session !== undefined);
  }
}

/**
 * For logs and events. Never throws: not of a store without a prototype either. Asks the prototype, not the store: a Proxy
 * may bind what it returns.
 */
export function storeName(store: object): string {
  try {
    const { name } =
      (Reflect.getPrototypeOf(store) as { constructor?: { name?: unknown } } | null)?.constructor ?? {};
    return typeof name === 'string' && name !== '' ? name : 'Object';
  } catch {
    return 'Object';
  }
}
