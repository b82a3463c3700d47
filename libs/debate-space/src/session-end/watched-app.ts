import type { IncomingMessage, ServerResponse } from 'node:http';
import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import { OpenWaits, PendingTasks, type WatchContext } from './context.js';
import { CookieSessions } from './cookie-sessions.js';
import { EndReporter } from './end-reporter.js';
import { UnwatchableStoreError } from './store-calls.js';
import { ArrivingRequests, storeIn, type RequestScope, type UnownedListener } from './request-scope.js';
import type { FoundSession, SessionEndOptions, SessionRecord, SessionStore } from './session-end.js';
import { defaultSessionUid, isObject, userIn } from './session-user.js';
import { SetupWarnings } from './setup-warnings.js';
import { WatchedStore } from './watched-store.js';

/** A host may make a store for each request: only the first ones are announced. */
const MAX_ANNOUNCED = 5;
/** After so many requests, only one in a hundred is checked for a session without a store: a host may have no sessions. */
const FIRST_LOOKS = 10_000;
/** A listener that never resolves must not keep an app from its shutdown. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The session stores and session cookies of one app. The platform calls its methods inside the containment. */
export class WatchedApp implements UnownedListener {
  readonly containment: Containment;
  readonly cookies: CookieSessions;
  /** The stores of the options. If there are none, every store that the requests bring along is watched. */
  readonly givenStores: readonly SessionStore[];
  readonly reporter: EndReporter;
  /** Whether any store is known. */
  hasStores = false;
  readonly #context: WatchContext;
  readonly #onStore: ((name: string) => void) | undefined;
  /** The watched stores. The wrappers in a store keep its watcher as long as it lives, and a found store is not kept alive. */
  readonly #watched = new WeakMap<object, WatchedStore>();
  readonly #all = new Set<WeakRef<WatchedStore>>();
  readonly #forgotten = new FinalizationRegistry<WeakRef<WatchedStore>>((gone) => this.#all.delete(gone));
  #announced = 0;
  readonly #unwatchable = new WeakSet<object>();
  #hasUnwatchableStore = false;
  #isClosed = false;
  #looks = 0;

  constructor(options: SessionEndOptions) {
    const { graceMs = 500, answerTimeoutMs = 250, liveSessions } = options;
    const hasOwnUid = options.uid !== undefined && options.uid !== defaultSessionUid;
    const uid = hasOwnUid ? options.uid : userIn;
    const containment = new Containment(options.onFault ?? (() => undefined));
    const warnings = new SetupWarnings(options.onWarning ?? (() => undefined), hasOwnUid);
    const reporter = new EndReporter(options, containment, answerTimeoutMs);
    const shared = { reporter, uid, graceMs, containment, warnings, liveSessions };
    const open = { tasks: new PendingTasks(), waits: new OpenWaits() };
    this.#context = { ...shared, ...open, arriving: new ArrivingRequests() };
    this.containment = containment;
    this.reporter = reporter;
    this.cookies = new CookieSessions(options.cookies ?? [], this.#context);
    this.givenStores = [options.store ?? []].flat();
    this.#onStore = options.onStore;
  }

  /** Whether no store is known yet, so that the requests have to bring one along. */
  get isLooking(): boolean {
    return this.givenStores.length === 0 && !this.hasStores;
  }

  /** Watches a store from now on. Never throws. @returns whether it was not watched before */
  watch(store: object): boolean {
    if (this.#isClosed || this.#unwatchable.has(store) || this.#watched.has(store)) return false;
    const name = storeName(store);
    try {
      const watched = new WatchedStore(store, this.#context);
      const reference = new WeakRef(watched);
      this.#watched.set(store, watched);
      this.#all.add(reference);
      this.#forgotten.register(watched, reference);
      this.hasStores = true;
      this.#announced += 1;
      if (this.#announced <= MAX_ANNOUNCED) this.containment.run('onStore', () => this.#onStore?.(name));
      return true;
    } catch (error) {
      this.#hasUnwatchableStore = true;
      this.#unwatchable.add(store);
      this.containment.report('session store', error);
      if (error instanceof UnwatchableStoreError)
        this.#context.warnings.warn('store-not-watchable', `${name}: its ${error.part} cannot be replaced`);
      return false;
    }
  }

  /** A request has brought this store along. @returns whether it was not watched before */
  found(store: object): boolean {
    return !this.#watched.has(store) && this.givenStores.length === 0 && this.watch(store);
  }

  /** Called for each request, before hooks and plugins that are registered later. */
  arrived(request: IncomingMessage, response: ServerResponse, native: object = request): void {
    if (this.cookies.names.length > 0) this.cookies.watch(request, response);
    else if (!this.hasStores) this.#lookForSession(request, response, native);
  }

  /** A parent app has loaded the session before the request came here. */
  loadedByParent(store: object, scope: RequestScope): void {
    if (this.found(store)) this.#context.warnings.warn('session-of-parent-app');
    this.loadedBefore(store, scope);
  }

  /** The requests of the platform whose session is not known yet. */
  watchArriving(arriving: ArrivingRequests): void {
    this.#context.arriving = arriving;
  }

  /** The request has had its session before this method could hear of it. */
  loadedBefore(store: object, scope: RequestScope): void {
    const { session, sessionID } = scope;
    if (session && sessionID !== undefined)
      this.#watched.get(store)?.sessions.loaded(scope, sessionID, session as SessionRecord);
  }

  closedWithoutSession(scope: RequestScope): void {
    this.containment.run('response close', () => {
      this.#context.arriving.delete(scope);
      this.#warnOfUncalledStore(scope);
      for (const { sessions } of this.#stores()) sessions.closedWithoutSession(scope);
    });
  }

  /** The session as the stores have it now. Ids cannot be guessed, so a store that has the session has the right one. */
  async find(sid: string): Promise<readonly FoundSession[]> {
    if (this.#hasUnwatchableStore || !this.hasStores) throw new Error('not every store can be read');
    const found = await Promise.all(this.#stores().map(({ reader }) => reader.find(sid)));
    return found.filter((session) => session !== undefined);
  }

  /** Decides every open end now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#context.waits.close();
    await withTimeout(this.#context.tasks.onIdle(), CLOSE_TIMEOUT_MS, undefined);
    for (const watched of this.#stores()) watched.release();
    this.hasStores = false;
  }

  #stores(): readonly WatchedStore[] {
    return [...this.#all].flatMap((each) => each.deref() ?? []);
  }

  /** The requests have sessions, but of a store that wraps the given one: the given one is not what they call. */
  #warnOfUncalledStore({ session, sessionStore }: RequestScope): void {
    if (!session || !sessionStore || this.#watched.has(sessionStore)) return;
    if (this.#unwatchable.has(sessionStore) || this.#stores().some(({ sessions }) => sessions.isUsed)) return;
    const name = storeName(sessionStore);
    this.#context.warnings.warn('store-not-watchable', `${name}: requests use it, but it is not watched`);
  }

  /** Looks when the response closes, because any middleware may have set the session. */
  #lookForSession(request: IncomingMessage, response: ServerResponse, native: object): void {
    this.#looks += 1;
    if (this.#looks > FIRST_LOOKS && this.#looks % 100 > 0) return;
    response.once('close', () => {
      this.containment.run('response close', () => {
        const { session } = native as { session?: unknown };
        if (!isObject(session) || storeIn(native, request)) return;
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
