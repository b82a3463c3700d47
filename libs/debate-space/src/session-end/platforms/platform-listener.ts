import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Containment } from '../../async/containment.js';
import { isObject } from '../is-object.js';
import type { SessionEndDetector } from './session-end-detector.js';
import type { CloseListener, SessionRequest } from '../verdict/session-request.js';

/** Of the requests after so many, one in a hundred is looked at for a session without a store: a host may have none. */
const FIRST_LOOKS = 10_000;

/** Hears of the requests of a platform. The platform calls each method inside the containment. */
export class PlatformListener {
  readonly containment: Containment;
  /** For requests that may clear the cookie of a session without having loaded it: one for all of them. */
  readonly onClosed: CloseListener;
  readonly #detector: SessionEndDetector;
  #looks = 0;

  constructor(detector: SessionEndDetector) {
    this.containment = detector.containment;
    this.#detector = detector;
    this.onClosed = { containment: this.containment, closed: this.#closed.bind(this) };
  }

  /** Whether a session store is watched. */
  get hasStores(): boolean {
    return this.#detector.stores.size > 0;
  }

  /** Whether a browser with these cookies may have a session. */
  mayKnow(cookieHeader: string): boolean {
    for (const watched of this.#detector.stores.values()) if (watched.mayKnow(cookieHeader)) return true;
    return false;
  }

  /** Each request, before hooks and plugins that are registered later. */
  requested(raw: IncomingMessage, response: ServerResponse, native: object): void {
    const { cookies, stores } = this.#detector;
    if (cookies.names.length > 0) cookies.watch(raw, response);
    else if (stores.size === 0) this.#lookForSession(response, native);
  }

  /** Whether a request may log a user in, although it has no session yet. */
  mayLogIn(method: string | undefined): boolean {
    return this.#detector.openRequests.counts(method);
  }

  opened(request: SessionRequest): void {
    this.#detector.openRequests.add(request);
  }

  /** A request has brought this store along. @returns whether it was not watched before */
  found(store: object): boolean {
    return this.#detector.givenStores.length === 0 && this.#detector.watch(store);
  }

  /** A request has got a session, out of this store. */
  loaded(store: object, request: SessionRequest): void {
    this.#detector.watchedStore(store)?.loaded(request);
  }

  /** A parent app has loaded the session before the store could be watched. */
  loadedByParent(store: object, request: SessionRequest | undefined): void {
    if (!this.found(store)) return;
    this.#detector.warnings.warn('session-of-parent-app');
    if (request) this.loaded(store, request);
  }

  #closed(request: SessionRequest): void {
    if (request.hasLoaded || !request.isAnswered) return;
    if (request.setCookies.length === 0 && !request.clearsCookies) return;
    for (const watched of this.#detector.stores.values()) watched.closedWithoutSession(request);
  }

  /** When the response is closed: the session may come from any middleware. */
  #lookForSession(response: ServerResponse, native: object): void {
    this.#looks += 1;
    if (this.#looks > FIRST_LOOKS && this.#looks % 100 > 0) return;
    const { containment, warnings } = this.#detector;
    response.once('close', () => {
      containment.run('response close', () => {
        const { session, sessionStore } = native as { session?: unknown; sessionStore?: unknown };
        if (!isObject(session) || sessionStore) return;
        warnings.warnOfUserIn(dataOf(session), 'session-without-store');
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
