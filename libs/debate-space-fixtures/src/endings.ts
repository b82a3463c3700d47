import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { filter, firstValueFrom, type Observable } from 'rxjs';
import { Browser, type Fetch } from './browser.js';
import { Latch } from './latch.js';
import { using } from './service.js';

/** One row of the table: what a host does with its session, and whether that ends it. */
export interface Ending<Context> {
  readonly name: string;
  readonly ends: boolean;
  /** Where the versions of a NestJS make it another: `test:matrix`. */
  readonly endsOn?: Readonly<Partial<Record<'nest10' | 'nest11', boolean>>>;
  readonly act: (context: Context) => unknown;
  /** How the act is reached: by a path, or `job` by no request at all. Default: a handler. */
  readonly path?:
    '/act' | '/act-guarded' | '/outside' | '/before-sessions' | '/act-events' | '/missing' | 'job';
  /** Whether the browser goes away before the act has come to its end. */
  readonly aborts?: boolean;
  /** The option of express-session. */
  readonly unset?: 'destroy';
}

const LONGER_THAN_A_LEASE_MS = 45_000;

export interface EndingHost {
  readonly app: INestApplication;
  readonly url: string;
  stop(): Promise<void>;
  /** From now on nothing fails any more. */
  recover?: () => void;
  /** Default: that of HTTP/1.1. */
  readonly fetch?: Fetch;
  /** Has the act happen without any request. */
  job?: () => unknown;
  /**
   * Has the act happen in another way than by a request of HTTP, such as in a handler of a socket.
   * @returns how to disconnect
   */
  reach?: (browser: Browser) => Promise<() => void>;
  /** The name of a user that was reported, where the host knows users under another uid. */
  nameOf?: (uid: string) => string;
}

/** One column: a platform with a session library, and the rows that it has. */
export interface EndingStack<Context> {
  readonly name: string;
  readonly endings: readonly Ending<Context>[];
  start(
    act: (context: Context) => unknown,
    ending: Ending<Context>,
    /** Default: a host without the plugin. */
    debateSpace: DebateSpaceModuleOptions | undefined,
  ): Promise<EndingHost>;
}

export interface EndingCell extends Pick<Ending<never>, 'name' | 'ends' | 'endsOn'> {
  readonly stack: string;
  /** Whether the browser gets a whole answer of the request that ends the session. */
  readonly isAnswered: boolean;
  /**
   * @param options what the host gives the plugin besides the service
   * @param onAnswer called when the browser has the whole answer
   */
  readonly observe: (
    service: DebateSpaceSimulator,
    options?: Partial<DebateSpaceModuleOptions>,
    onAnswer?: () => void,
  ) => Promise<Observed>;
}

export interface Observed {
  /** The truth: the same browser, asked again, no longer gets the user. */
  readonly loggedOut: boolean;
  readonly reported: readonly string[];
}

export function cellsOf<Context>(stack: EndingStack<Context>): EndingCell[] {
  return stack.endings.map((ending) => ({
    stack: stack.name,
    name: ending.name,
    ends: ending.ends,
    endsOn: ending.endsOn,
    isAnswered: ending.path !== 'job' && ending.path !== '/act-events' && !ending.aborts,
    observe: (service, options, onAnswer) => observe(stack, ending, service, options, onAnswer),
  }));
}

async function observe<Context>(
  stack: EndingStack<Context>,
  ending: Ending<Context>,
  service: DebateSpaceSimulator,
  options?: Partial<DebateSpaceModuleOptions>,
  onAnswer?: () => void,
): Promise<Observed> {
  const [entered, left] = [new Latch(), new Latch()];
  const act = async (context: Context): Promise<void> => {
    entered.open();
    try {
      await ending.act(context);
    } finally {
      left.open();
    }
  };
  const host = await stack.start(act, ending, using(service, options));
  const browser = new Browser(host.url, host.fetch);
  await browser.post('/login', { uid: 'alice' });
  if ((await browser.get('/whoami')) !== 'alice') throw new Error('alice could not log in');

  const events = host.app.get(DebateSpaceEvents).events$ as Observable<{ type: string }>;
  const reports = ['session-ended', 'logout-delivered'];
  const firstReport = firstValueFrom(events.pipe(filter(({ type }) => reports.includes(type))), {
    defaultValue: undefined,
  });
  const leaving = new AbortController();
  const { path = '/act' } = ending;
  let disconnect = (): void => undefined;
  if (path === 'job') await host.job?.();
  else if (host.reach) {
    disconnect = await host.reach(browser);
    await left.passed;
  } else {
    const method = path === '/act-events' ? 'GET' : 'POST';
    const answer = browser.fetch(path, { method, signal: leaving.signal });
    const aborted = answer.catch(() => undefined); // it may reject before anybody waits for it
    await entered.passed;
    if (ending.aborts) leaving.abort();
    await left.passed;
    if (ending.aborts) await aborted;
    else if (path !== '/act-events') {
      await (await answer).text();
      onAnswer?.();
    }
  }

  host.recover?.();
  const loggedOut = (await browser.get('/whoami')) !== 'alice';
  const withoutRequest = path === 'job' || host.reach !== undefined;
  // What is missed is seen in what was reported.
  if (loggedOut && withoutRequest) await byVerdict(service, firstReport);
  else if (loggedOut) await service.received.waitFor('logout', { timeoutMs: 10_000 }).catch(() => undefined);
  disconnect();
  leaving.abort();
  if (ending.aborts) (host.app.getHttpServer() as { closeAllConnections?(): void }).closeAllConnections?.();
  await host.stop(); // has every verdict fall, and delivers what there is
  const { nameOf = (uid: string): string => uid } = host;
  return { loggedOut, reported: service.received.logouts.map(nameOf) };
}

/**
 * Waits for the report of an end that no request is part of.
 * @throws Error when the lease of the noted end had to run out before it was reported
 */
async function byVerdict(
  service: DebateSpaceSimulator,
  firstReport: Promise<{ type: string } | undefined>,
): Promise<void> {
  const received = service.received.waitFor('logout', { timeoutMs: LONGER_THAN_A_LEASE_MS });
  if ((await received.catch(() => undefined)) === undefined) return; // missed
  if ((await firstReport)?.type !== 'session-ended')
    throw new Error('the end was reported only when the lease of its entry had run out');
}
