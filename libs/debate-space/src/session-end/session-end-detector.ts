import { setMaxListeners } from 'node:events';
import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import type { SessionCookie, SessionRecord, SessionUid } from '../debate-space.options.js';
import { CookieSessions } from './cookie-sessions.js';
import { defaultSessionUid } from './default-session-uid.js';
import type { DetectorContext } from './detector-context.js';
import type { EndRecorder } from './end-recorder.js';
import { ExpirySweep } from './expiry-sweep.js';
import { UnwatchableStoreError } from './patch-store.js';
import { PendingTasks } from './pending-tasks.js';
import { RegistryWriter, type SessionIndexing } from './registry-writer.js';
import type { UserSession } from './session-registry.js';
import { SetupWarnings } from './setup-warnings.js';
import { WatchedStore } from './watched-store.js';

export interface DetectorOptions {
  readonly uid: SessionUid;
  readonly graceMs: number;
  /** @defaultValue none */
  readonly cookies?: readonly SessionCookie[];
  /** For the policy `last`, and for expiry: where live sessions are registered. @defaultValue nowhere */
  readonly indexing?: SessionIndexing | undefined;
}

/** Watches session stores, and cookies that are sessions, for users whose session ends. */
export class SessionEndDetector {
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  readonly cookies: CookieSessions;
  readonly #context: DetectorContext;
  readonly #emit: Emit;
  readonly #stores = new Map<object, WatchedStore>();
  readonly #sweep: ExpirySweep | undefined;
  readonly #shutdown = new AbortController();
  /** Whether there is a store that cannot be watched. */
  #isBlind = false;

  constructor(recorder: EndRecorder, options: DetectorOptions, emit: Emit) {
    const { uid, graceMs, cookies = [], indexing } = options;
    this.#emit = emit;
    this.containment = new Containment(emit);
    this.warnings = new SetupWarnings(emit, uid !== defaultSessionUid);
    const { containment, warnings } = this;
    const shutdownSignal = this.#shutdown.signal;
    setMaxListeners(0, shutdownSignal); // every verdict that is open listens
    const registry = indexing && new RegistryWriter(indexing, containment);
    const tasks = new PendingTasks();
    this.#context = { recorder, uid, graceMs, containment, warnings, tasks, shutdownSignal, registry };
    this.cookies = new CookieSessions(cookies, this.#context);
    if (indexing?.sweepMs !== undefined)
      this.#sweep = new ExpirySweep(indexing, indexing.sweepMs, this.#context, this.#lookUp.bind(this));
  }

  /** The stores that are watched. */
  get stores(): ReadonlyMap<object, WatchedStore> {
    return this.#stores;
  }

  /** Begins to look for sessions that have expired, if the host wants that. */
  start(): void {
    this.#sweep?.start();
  }

  /**
   * Watches a store from now on. Never throws.
   * @returns whether it was not watched before
   */
  watch(store: object): boolean {
    if (this.#stores.has(store) || this.#shutdown.signal.aborted) return false;
    const name = storeName(store);
    try {
      this.#stores.set(store, new WatchedStore(store, this.#context));
      this.#emit({ type: 'session-store-found', store: name });
      return true;
    } catch (error) {
      this.#isBlind = true;
      this.containment.report('session store', error);
      if (error instanceof UnwatchableStoreError) this.warnings.storeNotWatchable(name, error.part);
      return false;
    }
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#shutdown.abort();
    const swept = this.#sweep?.stopped();
    await this.#context.tasks.onIdle();
    for (const watched of this.#stores.values()) watched.release();
    this.#stores.clear();
    await swept;
  }

  /** Ids are not to be guessed, so whichever store has it has the right one. */
  async #lookUp({ sid, uid }: UserSession): Promise<SessionRecord | undefined> {
    // What is not in the stores that can be asked may be in another.
    if (this.#isBlind || this.#stores.size === 0) throw new Error('not every store can be asked');
    const found = await Promise.all([...this.#stores.values()].map(({ reader }) => reader.lookUp(sid, uid)));
    return found.find((session) => session !== undefined);
  }
}

/** For logs and events. Never throws: not of a store without a prototype either. */
export function storeName(store: object): string {
  try {
    const { name } = (store as { readonly constructor?: { readonly name?: unknown } }).constructor ?? {};
    return typeof name === 'string' ? name : 'Object';
  } catch {
    return 'Object';
  }
}
