import type { IncomingMessage, ServerResponse } from 'node:http';
import { OpenRequests } from './active-requests.js';
import { Containment } from './containment.js';
import type { WatchContext } from './context.js';
import { CookieSessions } from './cookie-sessions.js';
import { EndReporter } from './end-reporter.js';
import { UnwatchableStoreError } from './patch-store.js';
import type { FoundSession, SessionEndOptions, SessionStore } from './session-end.js';
import type { CloseListener, NativeRequest, SessionRequest } from './session-request.js';
import { defaultSessionUid, isObject, userIn } from './session-user.js';
import { SetupWarnings } from './setup-warnings.js';
import { OpenWaits, PendingTasks, withTimeout } from './waits.js';
import { WatchedStore } from './watched-store.js';

/** Of the requests after so many, one in a hundred is looked at for a session without a store: a host may have none. */
const FIRST_LOOKS = 10_000;
/** A listener that never comes to its end must not keep an app from its own. */
const CLOSE_WITHIN_MS = 5_000;

/** The session stores and session cookies of one app. The platform calls its methods inside the containment. */
export class WatchedApp implements CloseListener {
  readonly containment: Containment;
  readonly isForOthers = true;
  /** The requests under way that may log a user in. */
  readonly openRequests: OpenRequests;
  readonly cookies: CookieSessions;
  /** The stores of the options; none: every store that the requests bring along is watched. */
  readonly givenStores: readonly SessionStore[];
  /** The stores that are watched. */
  readonly stores = new Map<object, WatchedStore>();
  readonly reporter: EndReporter;
  readonly #context: WatchContext;
  readonly #onStore: ((name: string) => void) | undefined;
  /** The stores by the prototype that each has got: that of a Proxy is its target's. */
  #byPrototype = new WeakMap<object, WatchedStore>();
  /** Stores that cannot be watched. */
  readonly #unwatchable = new WeakSet<object>();
  #isBlind = false;
  #isClosed = false;
  #looks = 0;

  constructor(options: SessionEndOptions) {
    const { graceMs = 500, answerTimeoutMs = 250, liveSessions } = options;
    const hasOwnUid = options.uid !== undefined && options.uid !== defaultSessionUid;
    const uid = hasOwnUid ? options.uid : userIn;
    const containment = new Containment(options.onFault ?? (() => undefined));
    const warn = options.onWarning ?? (() => undefined);
    const warnings = new SetupWarnings(warn, hasOwnUid);
    const openRequests = new OpenRequests(containment, liveSessions?.lastOnly === true);
    const reporter = new EndReporter(options, containment, answerTimeoutMs);
    const shared = { reporter, uid, graceMs, containment, warnings, openRequests, liveSessions };
    this.#context = { ...shared, tasks: new PendingTasks(), waits: new OpenWaits() };
    this.containment = containment;
    this.openRequests = openRequests;
    this.reporter = reporter;
    this.cookies = new CookieSessions(options.cookies ?? [], this.#context);
    this.givenStores = [options.store ?? []].flat();
    this.#onStore = options.onStore;
  }

  /** Whether the requests have not brought the store along that is to be watched. */
  get isLooking(): boolean {
    return this.givenStores.length === 0 && this.stores.size === 0;
  }

  /** How a store is watched, or the one behind a Proxy. */
  watchedStore(store: object): WatchedStore | undefined {
    return this.stores.get(store) ?? this.#byPrototype.get(Reflect.getPrototypeOf(store) ?? store);
  }

  /**
   * Watches a store from now on. Never throws.
   * @returns whether it was not watched before
   */
  watch(store: object): boolean {
    if (this.#isClosed || this.#unwatchable.has(store) || this.watchedStore(store)) return false;
    const name = storeName(store);
    try {
      const watched = new WatchedStore(store, this.#context);
      this.stores.set(store, watched);
      this.#byPrototype.set(Reflect.getPrototypeOf(store) ?? store, watched);
      this.containment.run('onStore', () => this.#onStore?.(name));
      return true;
    } catch (error) {
      this.#isBlind = true;
      this.#unwatchable.add(store);
      this.containment.report('session store', error);
      if (error instanceof UnwatchableStoreError)
        this.#context.warnings.warn(
          'store-not-watchable',
          `${name} cannot be watched, because its ${error.part}`,
        );
      return false;
    }
  }

  /** A request has brought this store along. @returns whether it was not watched before */
  found(store: object): boolean {
    return this.givenStores.length === 0 && this.watch(store);
  }

  /** Whether a browser with these cookies may have a session. */
  mayKnow(cookieHeader: string): boolean {
    for (const watched of this.stores.values()) if (watched.mayKnow(cookieHeader)) return true;
    return false;
  }

  /** Each request, before hooks and plugins that are registered later. */
  arrived(request: IncomingMessage, response: ServerResponse, native: object = request): void {
    if (this.cookies.names.length > 0) this.cookies.watch(request, response);
    else if (this.stores.size === 0) this.#lookForSession(response, native);
  }

  /** A request has got a session, out of this store. */
  loaded(store: object, request: NativeRequest, session: unknown, sid: string | undefined): void {
    this.watchedStore(store)?.loaded(request, session, sid);
  }

  /** A parent app has loaded the session before the store could be watched. */
  loadedByParent(store: object, request: SessionRequest): void {
    if (!this.found(store)) return;
    this.#context.warnings.warn('session-of-parent-app');
    this.loaded(store, request.native, request.session, request.sessionID);
  }

  /** The answer of a request may clear the cookie of a session that it has not loaded. */
  closed(request: SessionRequest): void {
    if (!request.isAnswered) return;
    if (request.setCookies.length === 0 && !request.clearsCookies) return;
    for (const watched of this.stores.values()) watched.closedWithoutSession(request);
  }

  /** The session as the stores have it now. Ids are not to be guessed, so whichever store has it has the right one. */
  async find(sid: string): Promise<readonly FoundSession[]> {
    // What is not in the stores that can be asked may be in another.
    if (this.#isBlind || this.stores.size === 0) throw new Error('not every store can be asked');
    const found = await Promise.all([...this.stores.values()].map(({ reader }) => reader.find(sid)));
    return found.filter((session) => session !== undefined);
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#context.waits.close();
    await withTimeout(this.#context.tasks.onIdle(), CLOSE_WITHIN_MS, undefined);
    for (const watched of this.stores.values()) watched.release();
    this.stores.clear();
    this.#byPrototype = new WeakMap();
  }

  /** When the response is closed: the session may come from any middleware. */
  #lookForSession(response: ServerResponse, native: object): void {
    this.#looks += 1;
    if (this.#looks > FIRST_LOOKS && this.#looks % 100 > 0) return;
    response.once('close', () => {
      this.containment.run('response close', () => {
        const { session, sessionStore } = native as { session?: unknown; sessionStore?: unknown };
        if (!isObject(session) || sessionStore) return;
        this.#context.warnings.withoutStore(dataOf(session));
      });
    });
  }
}

/** @fastify/secure-session hides what it keeps behind a method. */
function dataOf(session: object): object {
  const { data } = session as { data?: unknown };
  const result: unknown = typeof data === 'function' ? Reflect.apply(data, session, []) : undefined;
  return isObject(result) ? result : session;
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
