// npm run bench -- scale --simulate: so many erasures at 100 requests a minute, beside the logouts of every day, without a
// wall clock: the plugin as a host has it, with a clock that jumps from one timer to the next and a service in the adapter.
import 'reflect-metadata';
import 'axios'; // loaded by the plugin with its first request, which takes longer than a simulated moment
import { performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { SimulatedClock } from './scale-clock.mjs';

const LIMIT = { requests: 100, perMs: 60_000 };
/** The share of the slots that jobs leave to the calls of the host. */
const RESERVED = 0.2;
const LOGOUTS_A_DAY = 10_000;
const ANSWER_MS = 80;
const GOALS = { overBound: 1.02, waitMs: 5_000 };
const DAY_MS = 86_400_000;

export async function simulate(size) {
  const wallClock = performance.now.bind(performance);
  const begun = wallClock();
  const clock = new SimulatedClock();
  clock.install();
  const requestedAt = new Map(); // of the logouts that have not arrived
  const waits = [];
  const limited = []; // when each request under {base_url} came
  const adapter = async (config) => {
    const { pathname } = new globalThis.URL(config.url);
    if (pathname.startsWith('/auth/logout/')) {
      const uid = subjectOf(config.data);
      if (requestedAt.has(uid)) waits.push(clock.now - requestedAt.get(uid));
      requestedAt.delete(uid);
    } else if (pathname !== '/oauth/token') limited.push(clock.now);
    await new Promise((resolve) => globalThis.setTimeout(resolve, ANSWER_MS));
    const token = { access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 };
    const data = JSON.stringify(pathname === '/oauth/token' ? token : { success: true });
    return { status: 200, statusText: 'OK', headers: { get: () => undefined }, data, config };
  };
  class HostModule {}
  const plugin = DebateSpaceModule.forRoot({
    apiKey: 'an-api-key',
    secretKey: 'a secret key that is long enough for HS256',
    applicationName: 'demo',
    authUrl: 'http://127.0.0.1:9',
    baseUrl: 'http://127.0.0.1:9/api',
    http: { adapter, rateLimit: LIMIT },
  });
  Module({ imports: [plugin] })(HostModule);
  const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
  const [service, erasures] = [app.get(DebateSpaceService), app.get(DebateSpaceErasures)];

  const reference = 'simulation';
  const uids = Array.from({ length: size }, (_, n) => `user-${n}`);
  await erasures.requestMany(uids, { mode: 'anonymize', reference });
  const from = clock.now;
  let logouts = 0;
  const logOut = () => {
    const uid = `visitor-${(logouts += 1)}`;
    requestedAt.set(uid, clock.now);
    void service.logoutUser(uid);
    // As people come: at random.
    globalThis.setTimeout(logOut, -Math.log(1 - Math.random()) * (DAY_MS / LOGOUTS_A_DAY));
  };
  logOut();
  let status;
  for (let steps = 0; status?.state !== 'done'; steps += 1) {
    await clock.step();
    if (steps % 1_000 === 0 || limited.length >= size) status = await erasures.status(reference);
  }
  report({ size, status, tookMs: clock.now - from, limited, waits, requestedAt, now: clock.now });
  console.log(`  simulated in ${((wallClock() - begun) / 1000).toFixed(0)} s`);
}

const subjectOf = (data) =>
  JSON.parse(globalThis.Buffer.from(String(data).split('.')[1], 'base64url').toString()).sub;

function report({ size, status, tookMs, limited, waits, requestedAt, now }) {
  const minutes = (ms) => `${(ms / 60_000).toFixed(1)} minutes`;
  const bound = (size / (LIMIT.requests * (1 - RESERVED))) * LIMIT.perMs;
  const all = (size / LIMIT.requests) * LIMIT.perMs;
  const most = limited.reduce((found, at, n) => {
    const before = limited[n - LIMIT.requests];
    return before === undefined ? found : Math.min(found, at - before);
  }, Infinity);
  const longest = Math.max(0, ...waits, ...[...requestedAt.values()].map((at) => now - at));
  const verdict = (isMet, goal) => `   ${isMet ? 'PASS' : 'falls short'}, ${goal}`;
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
