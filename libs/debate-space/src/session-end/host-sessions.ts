import type { AbstractHttpAdapter } from '@nestjs/core';
import type { SessionStore } from '../debate-space.options.js';
import { onExpressSessionStore } from './express-session-stores.js';
import { onFastifySession, type FastifyLike } from './fastify-sessions.js';
import type { SessionEndDetector } from './session-end-detector.js';

/** Leads the sessions of one host to the detector, on the platform that the host runs on. */
export class HostSessions {
  readonly #detector: SessionEndDetector;
  readonly #stores: readonly SessionStore[];
  /** `undefined` until the platform is known. */
  #detach: (() => void) | undefined;
  #platform = 'none';

  /** @param given the stores of the options; without them, every store that the requests bring along is watched */
  constructor(detector: SessionEndDetector, given: SessionStore | readonly SessionStore[] | undefined) {
    this.#detector = detector;
    this.#stores = [given ?? []].flat();
    for (const store of this.#stores) detector.watch(store);
  }

  /** As early as the platform is there: Fastify's hooks are for what is registered after them. */
  attach(adapter: AbstractHttpAdapter | undefined): void {
    if (this.#detach || !adapter?.getType) return;
    const found = (store: object): void => {
      if (this.#stores.length === 0) this.#detector.watch(store);
    };
    const platform = adapter.getType();
    if (platform === 'express') {
      this.#platform = 'Express';
      this.#detach = onExpressSessionStore(adapter.getInstance<{ request: object }>(), found);
    }
    if (platform === 'fastify') {
      this.#platform = 'Fastify';
      this.#detach = onFastifySession(adapter.getInstance<FastifyLike>(), {
        found,
        loaded: (store, request) => {
          this.#detector.loaded(store, request);
        },
      });
    }
  }

  detach(): void {
    this.#detach?.();
  }

  /** For the boot log. */
  get description(): string {
    if (this.#stores.length > 0)
      return `session store: ${this.#stores.map((store) => store.constructor.name).join(', ')}`;
    if (!this.#detach) return 'no session is watched';
    return `session stack: ${this.#platform}, the store is taken from the first request that has one`;
  }
}
