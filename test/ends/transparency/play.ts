import { once } from 'node:events';
import { Agent } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isPromise } from 'node:util/types';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Latch } from 'debate-space-fixtures/latch.js';
import type { Acting, Action, Style } from './actions.js';
import { Client } from './client.js';
import type { Handling, Platform, PlatformHost } from './platforms.js';
import { recordWrites, type Callback, type OpenedStore, type Row, type StoreKind } from './stores.js';

export interface Cell {
  readonly action: Action;
  readonly style: Style;
  /** Whether the client goes away before the handler does anything. */
  readonly gone: boolean;
}

/** All that the host, its store and its browsers learn. Session ids and users have other names. */
export interface Played {
  readonly answer: unknown;
  /** What the handler sees and what reaches the store, in order. */
  readonly trace: readonly string[];
  /** The store's sessions of this cell and their users. */
  readonly rows: Readonly<Record<string, string>>;
  /** Who is logged in now, in the browser that acted and in another one of the same user. */
  readonly whoAmI: readonly [own: string, other: string];
}

/** So many turns of the event loop in which the store has nothing to do mean that the host is done. */
const QUIET_TURNS = 6;

/** What is seen of one cell, by names that are the same on every host. */
class Sighting {
  readonly trace: string[] = [];
  readonly reached = new Latch();
  readonly acted = new Latch();
  readonly sids: string[] = [];

  constructor(
    readonly cell: Cell,
    private readonly prefix: string,
    private readonly sizeOfStore: () => number,
  ) {}

  /** @returns `s1`, `s2`, … in the order of their appearance */
  sid(sid: unknown): string {
    if (typeof sid !== 'string' || sid === 'unknown') return String(sid);
    if (!this.sids.includes(sid)) this.sids.push(sid);
    return `s${this.sids.indexOf(sid) + 1}`;
  }

  user(row: unknown): string {
    const { user } = (row ?? {}) as Row;
    return row ? (user?.uid.replace(this.prefix, '') ?? 'nobody') : 'no session';
  }

  result(result: unknown): string {
    if (typeof result === 'number')
      return result === this.sizeOfStore() ? 'all sessions' : `${result} sessions`;
    if (typeof result !== 'object' || result === null) return String(result);
    if (result instanceof Error) return result.message;
    if ('cookie' in result) return this.user(result);
    const known = Object.entries(result).filter(([sid]) => this.sids.includes(sid));
    return known.map(([sid, row]) => `${this.sid(sid)}: ${this.user(row)}`).join();
  }
}

/** A host whose requests act as the cell says that is played. */
export class TableHost {
  readonly #agent = new Agent({ keepAlive: true });
  #host: PlatformHost | undefined;
  #sighting: Sighting | undefined;
  #alice = '';

  private constructor(
    readonly kind: StoreKind,
    private readonly opened: OpenedStore,
    /** Of the uids: tells the hosts apart in the service. */
    readonly prefix: string,
  ) {}

  static async start(
    platform: Platform,
    kind: StoreKind,
    prefix: string,
    debateSpace: DebateSpaceModuleOptions | undefined,
  ): Promise<TableHost> {
    const opened = kind.open();
    const table = new TableHost(kind, opened, prefix);
    recordWrites(opened.store, table.#written.bind(table));
    table.#host = await platform.start(opened.store, table.#handle.bind(table), debateSpace);
    return table;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#host?.stop();
  }

  /** @param name of its user */
  async play(cell: Cell, name: string): Promise<Played> {
    this.#alice = this.prefix + name;
    const { sids, row } = this.opened;
    const sighting = new Sighting(cell, this.prefix, () => sids().length);
    const before = new Set(sids());
    const newSids = (): readonly string[] => sids().filter((sid) => !before.has(sid));
    const [own, other] = [this.#newClient(), this.#newClient()];
    for (const client of [own, other]) {
      await client.ask('/login', this.#alice);
      newSids().forEach((sid) => sighting.sid(sid));
    }
    this.#sighting = sighting;
    const answer = cell.gone ? await this.#leave(own, sighting) : await this.#ask(own, sighting);
    await this.#quiet();
    this.#sighting = undefined;
    const rows = newSids().map((sid) => [sighting.sid(sid), sighting.user(row(sid))] as const);
    const whoIs = async (client: Client): Promise<string> =>
      (await client.ask('/whoami')).body.replace(this.prefix, '');
    return {
      answer,
      trace: sighting.trace,
      rows: Object.fromEntries(rows.toSorted(([a], [b]) => a.localeCompare(b))),
      whoAmI: [await whoIs(own), await whoIs(other)],
    };
  }

  #newClient(): Client {
    return new Client(this.#host?.url ?? '', this.#agent);
  }

  async #ask(client: Client, sighting: Sighting): Promise<unknown> {
    const answer = await client.ask('/act');
    const cookies = answer.cookies.map((cookie) => {
      const [, sid = ''] = /^[^=]+=(?:s:)?([^.;]*)/.exec(decodeURIComponent(cookie)) ?? [];
      return cookie.replace(/=[^;]*/, `=${sid && sighting.sid(sid)}`);
    });
    return { ...answer, cookies };
  }

  async #leave(client: Client, { reached, acted }: Sighting): Promise<string> {
    const leaving = client.open('/act');
    const left = once(leaving, 'response').then(
      () => 'answered',
      () => 'gone',
    );
    await reached.passed;
    leaving.destroy();
    await acted.passed;
    return left;
  }

  async #quiet(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns += 1) {
      await nextTurn();
      if (this.opened.isBusy()) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        turns = 0;
      }
    }
  }

  async #handle(handling: Handling): Promise<void> {
    const sighting = this.#sighting;
    if (!sighting) throw new Error('no cell is played');
    const { cell, sids, reached, acted, trace } = sighting;
    if (cell.gone) {
      const closed = once(handling.raw, 'close');
      reached.open();
      await closed;
    }
    const acting: Acting = Object.assign(handling, {
      store: this.opened.store as Acting['store'],
      alice: this.#alice,
      bob: `${this.prefix}bob`,
      sids: [sids[0] ?? '', sids[1] ?? ''] as const,
    });
    await act(acting, sighting);
    trace.push('the handler returns');
    acted.open();
  }

  #written(name: string, [sid, row]: readonly unknown[]): void {
    const sighting = this.#sighting;
    if (!sighting) return;
    const written = row && typeof row === 'object' ? ` ${sighting.user(row)}` : '';
    sighting.trace.push(`${STORE}${name === 'clear' ? 'all' : sighting.sid(sid)} ${name}${written}`);
  }
}

const STORE = 'store: ';
const RETURNED = 'returned ';

/** What a handler does, and what it sees of it. Without anything to await, it returns in the same tick. */
function act(acting: Acting, sighting: Sighting): Promise<void> | undefined {
  const { cell, trace } = sighting;
  const { action, style } = cell;
  const { request } = acting;
  const session = (): string => {
    const { session } = request;
    return session ? `${sighting.sid(acting.sid())} ${sighting.user(session)}` : 'none';
  };
  action.first?.(acting);
  if (!action.call) return undefined;
  let called: () => void = () => undefined;
  const calledBack = new Promise<void>((resolve) => {
    called = resolve;
  });
  let inside = true;
  const callback: Callback = (...results) => {
    const given = results.map((result) => sighting.result(result)).join();
    trace.push(`called back${inside ? ' within the call' : ''}: (${given}), session: ${session()}`);
    action.then?.(acting);
    called();
  };
  const returned = action.call(acting, style.callback ? callback : undefined);
  inside = false;
  const kind = returned === request.session ? 'the session' : typeof returned;
  trace.push(`${RETURNED}${isPromise(returned) ? 'a promise' : kind}, session: ${session()}`);
  if (!style.awaits) return undefined;
  return (style.callback ? calledBack : Promise.resolve(returned)).then((result) => {
    if (!style.callback) {
      trace.push(`resolved: (${sighting.result(result)}), session: ${session()}`);
      action.then?.(acting);
    }
    trace.push('goes on');
  });
}

/**
 * As a call may be seen that waits for a read: what the handler sees is the same and in the same order, and so are the writes
 * of each session; the two are not in the same order, and nothing is returned before the store was called.
 */
export function whereCallsMayWait({ trace, ...played }: Played, { promises = false }: StoreKind): unknown {
  const seen = trace.filter((line) => !line.startsWith(STORE));
  const writes = trace.filter((line) => line.startsWith(STORE));
  const isReturn = (line: string): boolean => line.startsWith(RETURNED) && !promises;
  return {
    ...played,
    seen: seen.map((line) => (isReturn(line) ? line.replace(/^[^,]*/, RETURNED) : line)),
    writes: writes.toSorted((a, b) => sidIn(a).localeCompare(sidIn(b))),
  };
}

const sidIn = (line: string): string => line.split(' ')[1] ?? '';

/**
 * How many of the user's two sessions have ended, by what the host without the plugin shows: does the same browser still get
 * the user? Some ends are not certain, and may be reported.
 */
export function endsIn({ whoAmI, trace }: Played, { action, gone }: Cell, name: string): Ends {
  const living = whoAmI.filter((user) => user === name).length;
  const ended = whoAmI.length - living;
  // Sessions of one user that end together may be reported once; one that is saved back is ended by the next cell.
  if (action.endsAll) return { least: Math.min(ended, 1), most: whoAmI.length + living };
  // A request whose client has gone has ended its session and saved it back: it may count as any slower request.
  const isSavedBack = trace.some((line) => line.startsWith(STORE) && !/ (touch|set) alice/.test(line));
  return { least: ended, most: gone && isSavedBack ? 1 : ended };
}

export interface Ends {
  readonly least: number;
  readonly most: number;
}
