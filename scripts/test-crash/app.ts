// One app process: Nest, express-session and the plugin, as a host has them. Its parent watches it, and kills it.
import 'reflect-metadata';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { Controller, HttpCode, Inject, Module, Post, Req, UnauthorizedException } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
} from 'nestjs-debate-space';
import { answerParent, beginApp, pluginOf, tell } from './app-process.js';
import { RENEWAL_REPORTED } from './logout-faults.js';
import { tellParent, type AppEvent, type Measured, type Question } from './messages.js';
import { ParentStore } from './session-store.js';
import type { WaitingStates } from './settled.js';

const TOLD_OF: readonly AppEvent['type'][] = [
  'storage-degraded',
  'storage-recovered',
  'logout-parked',
  'shutdown-incomplete',
  'fault',
];
const SWEEP_MS = 1_000;
const WAITING = ['pending', 'parked'];

const settings = beginApp();
const store = new ParentStore();

interface SessionRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly session: {
    user?: string | undefined;
    destroy(callback: (error?: Error) => void): void;
    regenerate(callback: (error?: Error) => void): void;
  };
}

@Controller()
class HostController {
  constructor(@Inject(DebateSpaceService) private readonly service: DebateSpaceService) {}

  @Post('login')
  @HttpCode(200)
  login(@Req() request: SessionRequest): void {
    request.session.user = request.headers['x-user'];
  }

  @Post('login-again')
  @HttpCode(200)
  async logInAgain(@Req() request: SessionRequest): Promise<string> {
    const user = userOf(request);
    await promisify(request.session.regenerate.bind(request.session))();
    request.session.user = user; // a new session
    if (settings.fault === RENEWAL_REPORTED) await this.service.logoutUser(user);
    return user;
  }

  @Post('logout')
  @HttpCode(200)
  async logout(@Req() request: SessionRequest): Promise<string> {
    const user = userOf(request);
    await promisify(request.session.destroy.bind(request.session))();
    return user;
  }
}

function userOf({ session: { user } }: SessionRequest): string {
  if (user === undefined) throw new UnauthorizedException();
  return user;
}

/** Dies in the same tick in which the answer to such a request has left the process. */
function dieAfterAnswer(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  if (request.headers['x-die'] !== undefined)
    response.once('finish', () => process.kill(process.pid, 'SIGKILL'));
  next();
}

/** Without `session.store` the plugin finds the store by itself. */
const watched = settings.sessionMs === undefined ? {} : { store, expiry: { sweepMs: SWEEP_MS } };
const options = { ...settings.options, session: watched };
const plugin = await pluginOf({ ...settings, options });

@Module({ imports: [plugin], controllers: [HostController] })
class HostModule {}

const app = await NestFactory.create(HostModule, { logger: false, forceCloseConnections: true });
const secret = 'only for crashes, and long enough for it';
const cookie = { maxAge: settings.sessionMs };
app.use(dieAfterAnswer, session({ secret, cookie, resave: false, saveUninitialized: false, store }));
app.enableShutdownHooks();
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (TOLD_OF.includes(event.type)) tell(event);
});

answerParent(answerTo);

async function answerTo({ uids = [], retry, erase, measure }: Question): Promise<unknown> {
  const logouts = app.get(DebateSpaceOutbox);
  if (measure) return measured();
  if (erase)
    return app.get(DebateSpaceErasures).requestMany(erase, { mode: 'delete', reference: erase.join(' ') });
  return retry ? retryAll(logouts) : waitingOf(logouts, uids);
}

function measured(): Measured {
  globalThis.gc?.();
  const heapMb = Number((process.memoryUsage().heapUsed / 1024 / 1024).toFixed(2));
  return { heapMb, handles: process.getActiveResourcesInfo().length };
}

/** Where the logouts of these users stand: of those that wait no more, nothing. */
async function waitingOf(logouts: DebateSpaceOutbox, uids: readonly string[]): Promise<WaitingStates> {
  const waiting: Record<string, string> = {};
  for (const uid of uids) {
    const { state } = (await logouts.history(uid)).find((logout) => WAITING.includes(logout.state)) ?? {};
    if (state !== undefined) waiting[uid] = state;
  }
  return waiting;
}

async function retryAll(logouts: DebateSpaceOutbox): Promise<number> {
  const parked = await logouts.parked({ limit: 1000 });
  for (const { id } of parked) await logouts.retry(id);
  return parked.length;
}

await app.listen(0, '127.0.0.1');
tellParent({ ready: await app.getUrl() });
