import type { AbstractHttpAdapter } from '@nestjs/core';
import type { SessionCookie, SessionStore } from '../debate-space.options.js';
import { onExpressSessionStore } from './express-session-stores.js';
import { onFastifySession, type FastifyLike } from './fastify-sessions.js';
import {
  onExpressRequest,
  onFastifyRequest,
  type ExpressHandler,
  type FastifyHooks,
} from './host-requests.js';
import type { SessionEndDetector } from './session-end-detector.js';

export interface HostSessionsOptions {
  /** Without it, every store that the requests bring along is watched. */
  readonly store?: SessionStore | readonly SessionStore[] | undefined;
  readonly cookies: readonly SessionCookie[];
}

const PLATFORMS = { express: 'Express', fastify: 'Fastify' } as const;
type Platform = keyof typeof PLATFORMS;

/** Leads the sessions of one host to the detector, on the platform that the host runs on. */
export class HostSessions {
  readonly #detector: SessionEndDetector;
  readonly #stores: readonly SessionStore[];
  readonly #cookies: readonly SessionCookie[];
  #platform: Platform | undefined;
  readonly #detach: (() => void)[] = [];

  constructor(detector: SessionEndDetector, { store, cookies }: HostSessionsOptions) {
    this.#detector = detector;
    this.#stores = [store ?? []].flat();
    this.#cookies = cookies;
    for (const given of this.#stores) detector.watch(given);
  }

  /** Once, as early as the platform is there: Fastify's hooks are for what is registered after them. */
  attach(adapter: AbstractHttpAdapter | undefined): void {
    const type = adapter?.getType();
    if (this.#platform || !adapter || (type !== 'express' && type !== 'fastify')) return;
    this.#platform = type;
    const instance: unknown = adapter.getInstance();
    this.#detach.push(this.#attachStores(type, instance));
    if (this.#cookies.length > 0) this.#detach.push(this.#attachCookies(type, instance));
  }

  detach(): void {
    for (const detach of this.#detach) detach();
  }

  /** For the boot log. */
  get description(): string {
    const parts = this.#cookies.map(({ name }) => `session cookie: ${name}`);
    if (this.#stores.length > 0)
      parts.push(`session store: ${this.#stores.map((store) => store.constructor.name).join(', ')}`);
    else if (this.#platform && parts.length === 0)
      parts.push(
        `session stack: ${PLATFORMS[this.#platform]}, the store is taken from the first request that has one`,
      );
    return parts.length > 0 ? parts.join('; ') : 'no session is watched';
  }

  #attachStores(platform: Platform, instance: unknown): () => void {
    const found = (store: object): void => {
      if (this.#stores.length === 0) this.#detector.watch(store);
    };
    if (platform === 'express') return onExpressSessionStore(instance as { request: object }, found);
    const loaded: SessionEndDetector['loaded'] = (store, request) => {
      this.#detector.loaded(store, request);
    };
    return onFastifySession(instance as FastifyLike, { found, loaded });
  }

  #attachCookies(platform: Platform, instance: unknown): () => void {
    const listener: SessionEndDetector['watchCookies'] = (request, response) => {
      this.#detector.watchCookies(request, response);
    };
    return platform === 'express'
      ? onExpressRequest(instance as ExpressHandler, listener)
      : onFastifyRequest(instance as FastifyHooks, listener);
  }
}
