// npm run bench -- scale --simulate: so many erasures at 100 requests a minute, beside the logouts of every day, without a
// wall clock: the plugin as a host has it, with a clock that jumps from one timer to the next and a service in the adapter.
import 'reflect-metadata';
import { AxiosHeaders, type AxiosAdapter } from 'axios';
import { performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceModule,
  DebateSpaceService,
  type ErasureStatus,
} from 'nestjs-debate-space';
import { LogoutTokenSigner, Transport } from 'nestjs-debate-space/internal';
import { keys } from './bench-keys.js';
import { SimulatedClock } from './scale-clock.js';

const LIMIT = { requests: 100, perMs: 60_000 };
/** The share of the slots that jobs leave to the calls of the host. */
const RESERVED = 0.2;
const LOGOUTS_A_DAY = 10_000;
const ANSWER_MS = 80;
const GOALS = { overBound: 1.02, waitMs: 5_000 };
const DAY_MS = 86_400_000;

interface Simulated {
  readonly size: number;
  readonly status: ErasureStatus;
  readonly tookMs: number;
  /** When each request under {base_url} came. */
  readonly limited: readonly number[];
  /** Of the logouts that have arrived, how long each waited. */
  readonly waits: readonly number[];
  /** Of the logouts that have not, when each was requested. */
  readonly requestedAt: ReadonlyMap<string, number>;
  readonly now: number;
}

export async function simulate(size: number): Promise<void> {
  const wallClock = performance.now.bind(performance);
  const begun = wallClock();
  const clock = new SimulatedClock();
  clock.install();
  const requestedAt = new Map<string, number>();
  const waits: number[] = [];
  const limited: number[] = [];
  const adapter: AxiosAdapter = async (config) => {
    const { pathname } = new URL(config.url ?? '');
    if (pathname.startsWith('/auth/logout/')) {
      const uid = subjectOf(config.data);
      const at = requestedAt.get(uid);
      if (at !== undefined) waits.push(clock.now - at);
      requestedAt.delete(uid);
    } else if (pathname !== '/oauth/token') limited.push(clock.now);
    await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
    const token = { access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 };
    const data = JSON.stringify(pathname === '/oauth/token' ? token : { success: true });
    return { status: 200, statusText: 'OK', headers: new AxiosHeaders(), data, config };
  };
  const plugin = DebateSpaceModule.forRoot({
    ...keys,
    applicationName: 'demo',
    authUrl: 'http://127.0.0.1:9',
    baseUrl: 'http://127.0.0.1:9/api',
    http: { adapter, rateLimit: LIMIT },
  });
  @Module({ imports: [plugin] })
  class HostModule {}
  const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
  // The first logout would load this, which takes longer than a simulated moment.
  await Promise.all([app.get(LogoutTokenSigner).load(), app.get(Transport).load()]);
  const [service, erasures] = [app.get(DebateSpaceService), app.get(DebateSpaceErasures)];

  const reference = 'simulation';
  const uids = Array.from({ length: size }, (_, n) => `user-${n}`);
  await erasures.requestMany(uids, { mode: 'anonymize', reference });
  const from = clock.now;
  let logouts = 0;
  const logOut = (): void => {
    const uid = `visitor-${(logouts += 1)}`;
    requestedAt.set(uid, clock.now);
    void service.logoutUser(uid);
    // As people come: at random.
    setTimeout(logOut, -Math.log(1 - Math.random()) * (DAY_MS / LOGOUTS_A_DAY));
  };
  logOut();
  let status = await erasures.status(reference);
  for (let steps = 0; status.state !== 'done'; steps += 1) {
    await clock.step();
    if (steps % 1_000 === 0 || limited.length >= size) status = await erasures.status(reference);
  }
  report({ size, status, tookMs: clock.now - from, limited, waits, requestedAt, now: clock.now });
  console.log(`  simulated in ${((wallClock() - begun) / 1000).toFixed(0)} s`);
}

function subjectOf(data: unknown): string {
  const payload = Buffer.from(String(data).split('.')[1] ?? '', 'base64url').toString();
  return (JSON.parse(payload) as { readonly sub: string }).sub;
}

function report({ size, status, tookMs, limited, waits, requestedAt, now }: Simulated): void {
  const minutes = (ms: number): string => `${(ms / 60_000).toFixed(1)} minutes`;
  const bound = (size / (LIMIT.requests * (1 - RESERVED))) * LIMIT.perMs;
  const all = (size / LIMIT.requests) * LIMIT.perMs;
  const most = limited.reduce((found, at, n) => {
    const before = limited[n - LIMIT.requests];
    return before === undefined ? found : Math.min(found, at - before);
  }, Infinity);
  const longest = Math.max(0, ...waits, ...[...requestedAt.values()].map((at) => now - at));
  const verdict = (isMet: boolean, goal: string): string => `   ${isMet ? 'PASS' : 'falls short'}, ${goal}`;
  console.log(
    `\n${size} erasures at ${LIMIT.requests} requests a minute, ${LOGOUTS_A_DAY} logouts a day, simulated`,
  );
  console.log(
    `  finished after ${minutes(tookMs)}: ${(tookMs / bound).toFixed(4)} of the bound, ` +
      `since jobs leave a fifth of the slots to calls` +
      verdict(tookMs <= bound * GOALS.overBound, `≤ ${GOALS.overBound}`) +
      `; ${(tookMs / all).toFixed(4)} of what all slots would take`,
  );
  console.log(`  ${status.done} done, ${status.notFound} unknown, ${limited.length} requests`);
  console.log(`  101 requests came within no less than ${(most / 1000).toFixed(2)} s`);
  console.log(
    `  ${waits.length} logouts arrived, the last to arrive after ${longest.toFixed(0)} ms` +
      verdict(longest <= GOALS.waitMs, `≤ ${GOALS.waitMs}`),
  );
}
