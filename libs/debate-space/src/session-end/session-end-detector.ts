import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import type { SessionCookie, SessionRecord, SessionUid } from '../debate-space.options.js';
import { CookieSessions } from './cookie-sessions.js';
import type { EndRecorder } from './end-recorder.js';
import { ExpirySweep } from './expiry-sweep.js';
import { defaultSessionUid } from './default-session-uid.js';
import { IndexedSessions, type SessionIndexing } from './indexed-sessions.js';
import type { SessionRequest } from './session-request.js';
import { UnwatchableStoreError } from './patch-store.js';
import { SetupWarnings } from './setup-warnings.js';
import { WatchedStore } from './watched-store.js';

export interface DetectorOptions {
  readonly uid: SessionUid;
  readonly graceMs: number;
  /** Default: none. */
  readonly cookies?: readonly SessionCookie[];
  /** For the policy `last`, and for expiry: where live sessions are noted. Default: nowhere. */
  readonly indexing?: SessionIndexing | undefined;
}

/** Watches session stores, and cookies that are sessions, for users whose session ends. */
export class SessionEndDetector {
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  readonly #recorder: EndRecorder;
  readonly #options: DetectorOptions;
  readonly #emit: Emit;
  readonly #stores = new Map<object, WatchedStore>();
  readonly #cookies: CookieSessions;
  readonly #indexed: IndexedSessions | undefined;
  readonly #sweep: ExpirySweep | undefined;
  readonly #hurry = new AbortController();
  /** Whether there is a store that cannot be watched. */
  #isBlind = false;

  constructor(recorder: EndRecorder, options: DetectorOptions, emit: Emit) {
    this.#recorder = recorder;
    this.#options = options;
    this.#emit = emit;
    this.containment = new Containment(emit);
    this.warnings = new SetupWarnings(emit, options.uid !== defaultSessionUid);
    setMaxListeners(0, this.#hurry.signal); // every verdict that is open listens
    const { containment } = this;
    this.#cookies = new CookieSessions({ cookies: options.cookies ?? [], recorder, containment });
    if (!options.indexing) return;
    const indexing = { ...options.indexing, containment };
    this.#indexed = new IndexedSessions(indexing);
    const lookUp = this.#lookUp.bind(this);
    if (indexing.sweepMs !== undefined)
      this.#sweep = new ExpirySweep({ ...indexing, everyMs: indexing.sweepMs, recorder, lookUp });
  }

  /** Begins to look for sessions that have run out, if told so. */
  start(): void {
    this.#sweep?.start();
  }

  /** Whether a session store is watched. */
  get hasStore(): boolean {
    return this.#stores.size > 0;
  }

  /** Watches the session cookies that the answer to a request sets; to be called before anybody writes it. */
  watchCookies(request: IncomingMessage, response: ServerResponse): void {
    this.#cookies.watch(request, response);
  }

  /**
   * Watches a store from now on. Never throws.
   * @returns whether it was not watched before
   */
  watch(store: object): boolean {
    if (this.#stores.has(store) || this.#hurry.signal.aborted) return false;
    const { containment, warnings } = this;
    const name = storeName(store);
    try {
      const watched = new WatchedStore(store, {
        recorder: this.#recorder,
        uid: this.#options.uid,
        graceMs: this.#options.graceMs,
        hurry: this.#hurry.signal,
        containment,
        warnings,
        indexed: this.#indexed,
      });
      this.#stores.set(store, watched);
      this.#emit({ type: 'session-store-found', store: name });
      return true;
    } catch (error) {
      this.#isBlind = true;
      containment.report('session store', error);
      if (error instanceof UnwatchableStoreError) warnings.storeNotWatchable(name, error.part);
      return false;
    }
  }

  /** A request has loaded its session; told by platforms whose stores do not hear of requests. */
  loaded(store: object, request: SessionRequest): void {
    this.#stores.get(store)?.loaded(request);
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#hurry.abort();
    const swept = this.#sweep?.stop();
    for (const watched of this.#stores.values()) {
      await watched.decided();
      watched.release();
    }
    this.#stores.clear();
    await this.#cookies.decided();
    await swept;
  }

  /** Ids are not to be guessed, so whichever store has it has the right one. */
  async #lookUp(sid: string, uid: string): Promise<SessionRecord | undefined> {
    // What is not in the stores that can be asked may be in another.
    if (this.#isBlind || this.#stores.size === 0) throw new Error('not every store can be asked');
    const found = await Promise.all([...this.#stores.values()].map((store) => store.lookUp(sid, uid)));
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
