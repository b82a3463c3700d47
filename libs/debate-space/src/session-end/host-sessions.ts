import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { SessionCookie, SessionStore } from '../debate-space.options.js';
import { onExpressSessionStore, parentStoreOf } from './express-sessions.js';
import { onFastifySession, type FastifyLike } from './fastify-sessions.js';
import { onExpressRequest, type ExpressHandler } from './host-requests.js';
import { storeName, type SessionEndDetector } from './session-end-detector.js';
import { sessionRequest } from './session-request.js';

export interface HostSessionsOptions {
  /** Without it, every store that the requests bring along is watched. */
  readonly store?: SessionStore | readonly SessionStore[] | undefined;
  readonly cookies: readonly SessionCookie[];
}

const PLATFORMS = { express: 'Express', fastify: 'Fastify' } as const;
type Platform = keyof typeof PLATFORMS;

/** Of the requests after so many, one in a hundred is looked at for a session without a store: a host may have none. */
const FIRST_LOOKS = 10_000;

/** Leads the sessions of one host to the detector, on the platform that the host runs on. */
export class HostSessions {
  readonly #detector: SessionEndDetector;
  readonly #stores: readonly SessionStore[];
  readonly #cookies: readonly SessionCookie[];
  #platform: Platform | undefined;
  readonly #detach: (() => void)[] = [];
  #looks = 0;

  constructor(detector: SessionEndDetector, { store, cookies }: HostSessionsOptions) {
    this.#detector = detector;
    this.#stores = [store ?? []].flat();
    this.#cookies = cookies;
    for (const given of this.#stores) detector.watch(given);
  }

  /** Once, as early as the platform is there: Fastify's hooks are for what is registered after them. Never throws. */
  attach(adapter: AbstractHttpAdapter | undefined): void {
    const type = adapter?.getType();
    if (this.#platform || !adapter || (type !== 'express' && type !== 'fastify')) return;
    this.#platform = type;
    const attach = type === 'express' ? this.#attachExpress : this.#attachFastify;
    this.#detector.containment.run('HTTP adapter', () => {
      attach.call(this, adapter.getInstance<unknown>());
    });
  }

  /** Never throws. */
  detach(): void {
    for (const detach of this.#detach.splice(0).reverse())
      this.#detector.containment.run('HTTP adapter', detach);
  }

  /** For the boot log. */
  get description(): string {
    const parts = this.#cookies.map(({ name }) => `session cookie: ${name}`);
    if (this.#stores.length > 0) parts.push(`session store: ${this.#stores.map(storeName).join(', ')}`);
    else if (this.#platform && parts.length === 0)
      parts.push(
        `session stack: ${PLATFORMS[this.#platform]}, the store is taken from the first request that has one`,
      );
    return parts.length > 0 ? parts.join('; ') : 'no session is watched';
  }

  #attachExpress(instance: unknown): void {
    const { containment } = this.#detector;
    const requested = (request: IncomingMessage, response: ServerResponse): void => {
      containment.run('express request', () => {
        this.#requested(request, response, request);
        const store = parentStoreOf(request);
        if (store) this.#behindParent(store, request);
      });
    };
    // One by one: what is attached can be detached, though the next cannot be attached.
    this.#detach.push(onExpressRequest(instance as ExpressHandler, requested));
    this.#detach.push(
      onExpressSessionStore(instance as { request: object }, containment, (store) => {
        this.#found(store);
      }),
    );
  }

  #attachFastify(instance: unknown): void {
    const detector = this.#detector;
    const detach = onFastifySession(instance as FastifyLike, {
      containment: detector.containment,
      requested: this.#requested.bind(this),
      found: this.#found.bind(this),
      loaded: detector.loaded.bind(detector),
    });
    this.#detach.push(detach);
  }

  #found(store: object): boolean {
    return this.#stores.length === 0 && this.#detector.watch(store);
  }

  #requested(request: IncomingMessage, response: ServerResponse, native: object): void {
    const detector = this.#detector;
    if (this.#cookies.length > 0) detector.watchCookies(request, response);
    else if (!detector.hasStore) this.#lookForSession(response, native);
  }

  /** The parent app has loaded the session before the store could be watched. */
  #behindParent(store: object, native: object): void {
    if (!this.#found(store)) return;
    this.#detector.warnings.sessionOfParentApp();
    const request = sessionRequest(native);
    if (request) this.#detector.loaded(store, request);
  }

  /** When the request is over: its session may come from any middleware. */
  #lookForSession(response: ServerResponse, native: object): void {
    this.#looks += 1;
    if (this.#looks > FIRST_LOOKS && this.#looks % 100 > 0) return;
    const { containment, warnings } = this.#detector;
    response.once('close', () => {
      containment.run('response close', () => {
        const { session, sessionStore } = native as { session?: unknown; sessionStore?: unknown };
        if (typeof session !== 'object' || session === null || sessionStore) return;
        warnings.sessionWithoutStore(dataOf(session));
      });
    });
  }
}

/** @fastify/secure-session hides what it keeps behind a method. */
function dataOf(session: object): object {
  const { data } = session as { data?: unknown };
  const result: unknown = typeof data === 'function' ? Reflect.apply(data, session, []) : undefined;
  return typeof result === 'object' && result !== null ? result : session;
}
