import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Containment } from '../containment.js';
import type { SessionCookie, SessionStore } from '../debate-space.options.js';
import { onExpressRequest, onExpressSessionStore } from './express.js';
import { onFastifySession } from './fastify.js';
import { storeName, type SessionEndDetector } from './session-end-detector.js';
import type { SessionRequest } from './session-request.js';

export interface HostSessionOptions {
  /** Without it, every store that the requests bring along is watched. */
  readonly store?: SessionStore | readonly SessionStore[] | undefined;
  readonly cookies: readonly SessionCookie[];
}

/** What a platform reports, each inside the containment. */
export interface PlatformListener {
  readonly containment: Containment;
  /** Each request, before hooks and plugins that are registered later. */
  requested(raw: IncomingMessage, response: ServerResponse, native: object): void;
  /** A request has brought this store along. @returns whether it was not watched before */
  found(store: object): boolean;
  /** A request has got a session, out of this store. */
  loaded(store: object, request: SessionRequest): void;
  /** A request comes out of the session middleware of a parent app. */
  behindParent(store: object, request: SessionRequest | undefined): void;
}

/** @returns how to stop */
export type Attach<T> = (instance: T, listener: PlatformListener) => () => void;

export interface AttachedPlatform {
  readonly name: string;
  /** Never throws. */
  readonly detach: () => void;
}

/** One by one: what is attached can be detached, though the next cannot be attached. */
const PLATFORMS = {
  express: { name: 'Express', attachers: [onExpressRequest, onExpressSessionStore] },
  fastify: { name: 'Fastify', attachers: [onFastifySession] },
} as unknown as Readonly<Record<string, { name: string; attachers: readonly Attach<unknown>[] } | undefined>>;

/** Of the requests after so many, one in a hundred is looked at for a session without a store: a host may have none. */
const FIRST_LOOKS = 10_000;

/**
 * Reports the sessions of one host to the detector. To be called as early as the platform is there: Fastify's hooks are
 * for what is registered after them. Never throws.
 * @returns `undefined` without a platform that has sessions
 */
export function attachPlatform(
  adapter: AbstractHttpAdapter | undefined,
  detector: SessionEndDetector,
  options: HostSessionOptions,
): AttachedPlatform | undefined {
  const platform = PLATFORMS[adapter?.getType() ?? ''];
  if (!adapter || !platform) return undefined;
  const { containment } = detector;
  const listener = new DetectingListener(detector, options);
  const detachers = platform.attachers.flatMap((attach) =>
    containment.run('HTTP adapter', () => [attach(adapter.getInstance(), listener)], []),
  );
  const detach = (): void => {
    for (const each of detachers.splice(0).reverse()) containment.run('HTTP adapter', each);
  };
  return { name: platform.name, detach };
}

/** For the boot log. */
export function describeSessions(
  { store, cookies }: HostSessionOptions,
  platform: AttachedPlatform | undefined,
): string {
  const stores = [store ?? []].flat();
  const parts = cookies.map(({ name }) => `session cookie: ${name}`);
  if (stores.length > 0) parts.push(`session store: ${stores.map(storeName).join(', ')}`);
  else if (platform && parts.length === 0)
    parts.push(`session stack: ${platform.name}, the store is taken from the first request that has one`);
  return parts.length > 0 ? parts.join('; ') : 'no session is watched';
}

class DetectingListener implements PlatformListener {
  readonly containment: Containment;
  readonly #detector: SessionEndDetector;
  readonly #hasStore: boolean;
  readonly #hasCookies: boolean;
  #looks = 0;

  constructor(detector: SessionEndDetector, { store, cookies }: HostSessionOptions) {
    this.containment = detector.containment;
    this.#detector = detector;
    this.#hasStore = [store ?? []].flat().length > 0;
    this.#hasCookies = cookies.length > 0;
  }

  requested(raw: IncomingMessage, response: ServerResponse, native: object): void {
    if (this.#hasCookies) this.#detector.cookies.watch(raw, response);
    else if (this.#detector.stores.size === 0) this.#lookForSession(response, native);
  }

  found(store: object): boolean {
    return !this.#hasStore && this.#detector.watch(store);
  }

  loaded(store: object, request: SessionRequest): void {
    this.#detector.stores.get(store)?.loaded(request);
  }

  /** The parent app has loaded the session before the store could be watched. */
  behindParent(store: object, request: SessionRequest | undefined): void {
    if (!this.found(store)) return;
    this.#detector.warnings.sessionOfParentApp();
    if (request) this.loaded(store, request);
  }

  /** When the response is closed: the session may come from any middleware. */
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
