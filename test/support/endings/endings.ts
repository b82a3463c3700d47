import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import type { Browser, Fetch } from '../browser/browser.js';
import type { Scene } from './scene.js';
import type { Trace } from './trace.js';
import type { HandledStore } from '../hosts/session-jobs.js';

/** One row of the table: what a host does with its sessions, and whose sessions that ends. */
export interface Ending<Context> {
  readonly name: string;
  /** Whether the session of alice ends, whose request it is. */
  readonly ends: boolean;
  /** Who is logged out. Default: alice, if her session ends. */
  readonly reports?: readonly string[] | undefined;
  /** Where the versions of a NestJS make it another: `test:matrix`. */
  readonly endsOn?: Readonly<Partial<Record<'nest10' | 'nest11', boolean>>> | undefined;
  readonly act: (context: Context) => unknown;
  /** Further cookies that the browser sends with it, as they are. */
  readonly cookies?: readonly string[] | undefined;
  /** How the act is reached: by a path, or `job` by no request at all. Default: a handler. */
  readonly path?: string | undefined;
  /** Whether the browser goes away before the act has come to its end. */
  readonly aborts?: boolean | undefined;
  /** Whether it is certain only when the answer has left, so that no answer can wait for the record. */
  readonly later?: boolean | undefined;
  /** A version of NestJS whose session library has it so. */
  readonly laterOn?: 'nest10' | undefined;
  /** Who is logged in to further browsers. */
  readonly others?: readonly string[] | undefined;
  /** In place of one request: what several browsers do. */
  readonly play?: ((scene: Scene) => Promise<void>) | undefined;
  /** Whether its act makes requests at once, so that their calls have no order. */
  readonly isConcurrent?: boolean | undefined;
  /** Whose browsers are logged out. Default: those of the reported. */
  readonly leaves?: readonly string[] | undefined;
  /** The option of express-session. */
  readonly unset?: 'destroy' | undefined;
}

export interface EndingHost {
  readonly app: INestApplication;
  readonly url: string;
  stop(): Promise<void>;
  /** From now on nothing fails any more. */
  recover?: () => void;
  /** Default: that of HTTP/1.1. */
  readonly fetch?: Fetch | undefined;
  /** Has the act happen without any request. */
  job?: () => unknown;
  /**
   * Has the act happen in another way than by a request of HTTP, such as in a handler of a socket.
   * @returns how to disconnect
   */
  reach?: (browser: Browser) => Promise<() => void>;
  /** Of the sessions, for jobs. */
  readonly store?: HandledStore | undefined;
  /** The name of a user that was reported, where the host knows users under another uid. */
  nameOf?: ((uid: string) => string) | undefined;
}

/** What the runner gives a host to start with. */
export interface Staging<Context> {
  readonly act: (context: Context) => unknown;
  /** Default: a host without the plugin. */
  readonly debateSpace: DebateSpaceModuleOptions | undefined;
  /** Hears what reaches the store, and what a handler sees. */
  readonly trace: Trace;
  /** The ids of the sessions of the other browsers. */
  readonly others: () => readonly string[];
}

/** One column: a platform with a session library, and the rows that it has. */
export interface EndingStack<Context> {
  readonly name: string;
  readonly endings: readonly Ending<Context>[];
  start(staging: Staging<Context>, ending: Ending<Context>): Promise<EndingHost>;
}

/** A row on a stack. */
export interface EndingCell {
  readonly stack: string;
  readonly ending: Ending<unknown>;
  readonly start: (staging: Staging<unknown>) => Promise<EndingHost>;
}

export function cellsOf<Context>(stack: EndingStack<Context>): EndingCell[] {
  return stack.endings.map((ending) => ({
    stack: stack.name,
    ending: ending as Ending<unknown>,
    start: (staging) => stack.start(staging, ending),
  }));
}
