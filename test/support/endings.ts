import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Browser } from './browser.js';
import { Gate } from './gate.js';
import { using } from './service.js';

/** One row of the table: what a host does with its session, and whether that ends it. */
export interface Ending<Context> {
  readonly name: string;
  readonly ends: boolean;
  /** Where the versions of a NestJS make it another: `test:matrix`. */
  readonly endsOn?: Readonly<Partial<Record<'nest10' | 'nest11', boolean>>>;
  readonly act: (context: Context) => unknown;
  /** How the act is reached. Default: a handler. */
  readonly path?: '/act' | '/act-guarded' | '/outside' | '/act-events' | '/missing';
  /** Whether the browser goes away before the act has come to its end. */
  readonly aborts?: boolean;
  /** The option of express-session. */
  readonly unset?: 'destroy';
}

export interface EndingHost {
  readonly app: INestApplication;
  readonly url: string;
  stop(): Promise<void>;
  /** From now on nothing fails any more. */
  recover?: () => void;
}

/** One column: a platform with a session library, and the rows that it has. */
export interface EndingStack<Context> {
  readonly name: string;
  readonly endings: readonly Ending<Context>[];
  start(
    act: (context: Context) => unknown,
    ending: Ending<Context>,
    debateSpace: DebateSpaceModuleOptions,
  ): Promise<EndingHost>;
}

export interface EndingCell extends Pick<Ending<never>, 'name' | 'ends' | 'endsOn'> {
  readonly stack: string;
  readonly observe: (service: DebateSpaceSimulator) => Promise<Observed>;
}

export interface Observed {
  /** The truth: the same browser, asked again, no longer gets the user. */
  readonly loggedOut: boolean;
  readonly told: readonly string[];
}

export function cellsOf<Context>(stack: EndingStack<Context>): EndingCell[] {
  return stack.endings.map((ending) => ({
    stack: stack.name,
    name: ending.name,
    ends: ending.ends,
    endsOn: ending.endsOn,
    observe: (service) => observe(stack, ending, service),
  }));
}

async function observe<Context>(
  stack: EndingStack<Context>,
  ending: Ending<Context>,
  service: DebateSpaceSimulator,
): Promise<Observed> {
  const [entered, left] = [new Gate(), new Gate()];
  const act = async (context: Context): Promise<void> => {
    entered.open();
    try {
      await ending.act(context);
    } finally {
      left.open();
    }
  };
  const host = await stack.start(act, ending, using(service));
  const browser = new Browser(host.url);
  await browser.post('/login', { uid: 'alice' });
  if ((await browser.get('/whoami')) !== 'alice') throw new Error('alice could not log in');

  const leaving = new AbortController();
  const { path = '/act' } = ending;
  const method = path === '/act-events' ? 'GET' : 'POST';
  const answer = browser.fetch(path, { method, signal: leaving.signal });
  await entered.passed;
  const aborted = answer.catch(() => undefined); // from now on: it may reject before anybody waits for it
  if (ending.aborts) leaving.abort();
  await left.passed;
  if (ending.aborts) await aborted;
  else if (path !== '/act-events') await (await answer).text();

  host.recover?.();
  const loggedOut = (await browser.get('/whoami')) !== 'alice';
  // What is missed is seen in what was told.
  if (loggedOut) await service.received.waitFor('logout', { timeoutMs: 10_000 }).catch(() => undefined);
  leaving.abort();
  if (ending.aborts) (host.app.getHttpServer() as { closeAllConnections(): void }).closeAllConnections();
  await host.stop(); // has every verdict fall, and delivers what there is
  return { loggedOut, told: service.received.logouts };
}
