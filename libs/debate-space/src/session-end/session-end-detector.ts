import type { Emit } from '../debate-space-event.js';
import type { SessionCookie, SessionUid } from '../debate-space.options.js';
import { CookieSessions, type RequestSource } from './cookie-sessions.js';
import type { EndRecorder } from './end-recorder.js';
import type { SessionRequest } from './session-request.js';
import { WatchedStore } from './watched-store.js';

export interface DetectorOptions {
  readonly uid: SessionUid;
  readonly graceMs: number;
  /** Default: none. */
  readonly cookies?: readonly SessionCookie[];
}

/** Watches session stores, and cookies that are sessions, for users whose session ends. */
export class SessionEndDetector {
  readonly #recorder: EndRecorder;
  readonly #options: DetectorOptions;
  readonly #emit: Emit;
  readonly #stores = new Map<object, WatchedStore>();
  readonly #cookies: CookieSessions;
  readonly #hurry = new AbortController();

  constructor(recorder: EndRecorder, options: DetectorOptions, emit: Emit) {
    this.#recorder = recorder;
    this.#options = options;
    this.#emit = emit;
    const fault = this.#fault.bind(this);
    this.#cookies = new CookieSessions({ cookies: options.cookies ?? [], recorder, fault });
  }

  /** Watches the cookies that this server's answers set. @returns how to stop */
  watchCookies(server: RequestSource): () => void {
    return this.#cookies.attach(server);
  }

  /** Watches a store from now on; one that is watched already is left as it is. Never throws. */
  watch(store: object): void {
    if (this.#stores.has(store) || this.#hurry.signal.aborted) return;
    const fault = this.#fault.bind(this);
    try {
      const { graceMs, uid } = this.#options;
      const recorder = this.#recorder;
      this.#stores.set(
        store,
        new WatchedStore(store, { recorder, uid, graceMs, hurry: this.#hurry.signal, fault }),
      );
      this.#emit({ type: 'session-store-found', store: store.constructor.name });
    } catch (error) {
      fault('session store', error); // frozen, or a Proxy that says no
    }
  }

  /** A request has loaded its session; told by platforms whose stores do not hear of requests. Never throws. */
  loaded(store: object, request: SessionRequest): void {
    this.#stores.get(store)?.loaded(request);
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#hurry.abort();
    for (const watched of this.#stores.values()) {
      await watched.decided();
      watched.release();
    }
    this.#stores.clear();
    await this.#cookies.decided();
  }

  #fault(where: string, error: unknown): void {
    this.#emit({ type: 'fault', where, error: error instanceof Error ? error.name : typeof error });
  }
}
