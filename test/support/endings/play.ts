// Plays one row on a fresh host, and says what came of it.
import { DebateSpaceEvents, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import type { Observable } from 'rxjs';
import { Browser } from '../browser/browser.js';
import type { EndingCell, EndingHost } from './endings.js';
import { Latch } from '../latch.js';
import type { Handling } from './handling.js';
import type { Actor, Scene } from './scene.js';
import { sidIn, Trace } from './trace.js';

export interface PlayOptions {
  /** Default: a host without the plugin. */
  readonly debateSpace?: DebateSpaceModuleOptions | undefined;
  readonly started?: ((host: EndingHost) => unknown) | undefined;
  /** Called before the host stops. */
  readonly over?: (() => void) | undefined;
  /** Called when the browser has the whole answer of the request that ends the session. */
  readonly answered?: () => void;
  /** Waits until these users were reported. Default: does not wait. */
  readonly reported?: (uids: readonly string[]) => Promise<unknown>;
}

export interface Played {
  /** The truth: whose browsers, asked again, no longer get their user. */
  readonly loggedOut: readonly string[];
  readonly trace: ReturnType<Trace['lines']>;
  readonly nameOf: (uid: string) => string;
}

export async function play(cell: EndingCell, options: PlayOptions): Promise<Played> {
  return new Play(cell, options).run();
}

class Play {
  readonly #trace: Trace;
  readonly #actors: { readonly uid: string | undefined; readonly browser: Browser }[] = [];
  readonly #acts = new Map<string, (handling: Handling) => unknown>();
  /** Of the browsers besides the first one. */
  readonly #others: string[] = [];
  readonly #entered = new Latch();
  readonly #left = new Latch();
  #ends: unknown[] = [];
  #endsChanged = new Latch();

  constructor(
    private readonly cell: EndingCell,
    private readonly options: PlayOptions,
  ) {
    this.#trace = new Trace(cell.ending.play !== undefined || cell.ending.isConcurrent === true);
  }

  async run(): Promise<Played> {
    const { cell, options } = this;
    const { ending } = cell;
    const host = await cell.start({
      act: (context) => this.#act(context),
      debateSpace: options.debateSpace,
      trace: this.#trace,
      others: () => this.#others,
    });
    if (options.debateSpace) this.#listen(host);
    options.started?.(host);
    const cleanUp: (() => void)[] = [];
    const loggedOut = new Set<string>();
    try {
      if (ending.play) await ending.play(this.#scene(host));
      else await this.#reach(host, cleanUp);
      host.recover?.();
      for (const [n, { uid, browser }] of this.#actors.entries())
        if (uid !== undefined && (await this.#ask(n, browser, 'GET', '/whoami')) !== uid) loggedOut.add(uid);
      await options.reported?.([...loggedOut]);
    } finally {
      for (const each of cleanUp) each();
      options.over?.();
      if (ending.aborts)
        (host.app.getHttpServer() as { closeAllConnections?(): void }).closeAllConnections?.();
      await host.stop(); // has every verdict fall, and delivers what there is
    }
    const { nameOf = (uid: string): string => uid } = host;
    return { loggedOut: [...loggedOut].toSorted(), trace: this.#trace.lines(), nameOf };
  }

  /** The row as its handler runs it. */
  async #act(context: unknown): Promise<void> {
    const { ending } = this.cell;
    const named = ending.play && this.#acts.get((context as Handling).url.split('?')[1] ?? '');
    this.#trace.handler(`begins: ${this.#sight(context)}`);
    this.#entered.open();
    try {
      await (named ?? ending.act)(context as Handling);
      this.#trace.handler(`ends: ${this.#sight(context)}`);
    } catch (error) {
      this.#trace.handler(`throws: ${String(error)}, ${this.#sight(context)}`);
      throw error;
    } finally {
      this.#left.open();
    }
  }

  /** What a handler sees of its session. */
  #sight(context: unknown): string {
    if (!(context as Partial<Handling>).platform) return 'a request';
    try {
      const { sid, session, fastify } = context as Handling;
      const content = JSON.stringify(session, (key, value: unknown) =>
        key === 'cookie' ? undefined : value,
      );
      const own = fastify && Object.keys(fastify.request).includes('session') ? ', its own' : '';
      return `${this.#trace.sid(sid)} ${content}${own}`;
    } catch {
      return 'no session';
    }
  }

  async #reach(host: EndingHost, cleanUp: (() => void)[]): Promise<void> {
    const { path = '/act', aborts = false, others = [], ends } = this.cell.ending;
    const { browser } = await this.#enter(host, 'alice');
    browser.further = this.cell.ending.cookies ?? [];
    for (const uid of others) this.#others.push(await (await this.#enter(host, uid)).sid());
    if (path === 'job') {
      await host.job?.();
      return;
    }
    if (host.reach) {
      cleanUp.push(await host.reach(browser));
      return this.#left.passed;
    }
    const leaving = new AbortController();
    cleanUp.push(() => {
      leaving.abort();
    });
    const method = path === '/act-events' ? 'GET' : 'POST';
    const answer = browser.fetch(path, { method, signal: leaving.signal });
    const aborted = answer.catch(() => undefined); // it may reject before anybody waits for it
    await this.#entered.passed;
    if (aborts) leaving.abort();
    await this.#left.passed;
    if (aborts) {
      await aborted;
      return;
    }
    if (path === '/act-events') {
      this.#trace.head(0, path, await answer);
      return;
    }
    await this.#trace.answered(0, path, await answer);
    if (ends) this.options.answered?.();
  }

  async #enter(host: EndingHost, uid: string | undefined): Promise<Actor> {
    const browser = new Browser(host.url, host.fetch);
    const n = this.#actors.push({ uid, browser }) - 1;
    if (uid !== undefined) {
      await this.#ask(n, browser, 'POST', '/login', new URLSearchParams({ uid }));
      if ((await this.#ask(n, browser, 'GET', '/whoami')) !== uid) throw new Error(`${uid} could not log in`);
    }
    return {
      browser,
      request: async (name, signal) => {
        const sent = browser.fetch(`/act?${name}`, { method: 'POST', ...(signal && { signal }) });
        return this.#trace.answered(n, name, await sent);
      },
      sid: async () => sidIn((await browser.cookies()).replace(/^[^=]*=/, '')),
    };
  }

  async #ask(
    n: number,
    browser: Browser,
    method: string,
    path: string,
    body?: URLSearchParams,
  ): Promise<string> {
    return this.#trace.answered(n, path, await browser.fetch(path, { method, ...(body && { body }) }));
  }

  #scene(host: EndingHost): Scene {
    return {
      enter: (uid) => this.#enter(host, uid),
      on: (name, act) => void this.#acts.set(name, act),
      job: async (work) => {
        if (host.store) await work(host.store);
      },
      reported: async (count = 1) => {
        while (this.options.reported && this.#ends.length < count) await this.#endsChanged.passed;
      },
      answered: () => this.options.answered?.(),
    };
  }

  #listen({ app }: EndingHost): void {
    const events = app.get(DebateSpaceEvents).events$ as Observable<{ readonly type: string }>;
    events.subscribe(({ type }) => {
      if (type !== 'session-ended') return;
      this.#ends.push(type);
      this.#endsChanged.open();
      this.#endsChanged = new Latch();
    });
  }
}
