import type { AbstractHttpAdapter } from '@nestjs/core';
import { watchExpress } from './express.js';
import { watchFastify } from './fastify.js';
import type { EndReason, FoundSession, SessionEndOptions } from './session-end.js';
import { storeName, WatchedApp } from './watched-app.js';

interface Platform {
  readonly name: string;
  /** @returns how to stop */
  readonly watch: (instance: never, app: WatchedApp) => () => void;
}

const PLATFORMS: Readonly<Record<string, Platform | undefined>> = {
  express: { name: 'Express', watch: watchExpress },
  fastify: { name: 'Fastify', watch: watchFastify },
};

/** Watches the sessions of one app until it is closed. None of its methods throws or rejects, but for {@link find}. */
export class SessionEndWatcher {
  readonly #app: WatchedApp;
  #platform: string | undefined;
  #detach: () => void = () => undefined;

  constructor(options: SessionEndOptions) {
    this.#app = new WatchedApp(options);
  }

  /**
   * Watches the given stores, and the requests of an HTTP adapter. To be called as early as the adapter is there: Fastify's
   * hooks are for what is registered after them. Does nothing the second time, and on a platform without sessions.
   */
  attach(adapter: AbstractHttpAdapter | undefined): void {
    for (const store of this.#app.givenStores) this.#app.watch(store);
    const platform = PLATFORMS[adapter?.getType() ?? ''];
    if (!adapter || !platform || this.#platform !== undefined) return;
    this.#platform = platform.name;
    const watch = (): (() => void) => platform.watch(adapter.getInstance<never>(), this.#app);
    this.#detach = this.#app.containment.run('HTTP adapter', watch, () => undefined);
  }

  /**
   * Reports an end that no session store knows of, such as a revoked JWT.
   * @param causes what lives as long as the request that ends it, such as its response: by these, each uid is reported once
   * @returns resolves when the listener has done; a promise only when it needs one
   */
  report(uid: string, reason: EndReason, causes: readonly unknown[] = []): unknown {
    return this.#app.reporter.report({ uid, reason, at: performance.now() }, causes);
  }

  /** A session as the stores have it now, as far as it has a user. Rejects when they cannot be read. */
  find(sid: string): Promise<readonly FoundSession[]> {
    return this.#app.find(sid);
  }

  /** Watches a store from now on, whatever the options say. */
  watch(store: object): void {
    this.#app.watch(store);
  }

  /** What is watched, for a boot log. */
  describe(): string {
    const { cookies, givenStores } = this.#app;
    const parts = cookies.names.map((name) => `session cookie: ${name}`);
    if (givenStores.length > 0) parts.push(`session store: ${givenStores.map(storeName).join(', ')}`);
    else if (this.#platform !== undefined && parts.length === 0)
      parts.push(`session stack: ${this.#platform}, the store is taken from the first request that has one`);
    return parts.length > 0 ? parts.join('; ') : 'no session is watched';
  }

  /** Stops watching new requests. */
  detach(): void {
    this.#app.containment.run('HTTP adapter', this.#detach);
    this.#detach = () => undefined;
  }

  /** Has every open verdict fall now, and gives the stores their own methods back. */
  async close(): Promise<void> {
    this.detach();
    await this.#app.close();
  }
}

/** Watches the sessions of an app from now on. @param adapter may come later: {@link SessionEndWatcher.attach} */
export function watchSessionEnds(
  adapter: AbstractHttpAdapter | undefined,
  options: SessionEndOptions,
): SessionEndWatcher {
  const watcher = new SessionEndWatcher(options);
  watcher.attach(adapter);
  return watcher;
}
