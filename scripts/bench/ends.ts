// npm run bench -- ends: how long the event loop of a host stands still when a store ends many sessions at once, with the
// plugin and without it.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { DebateSpaceEvents, DebateSpaceModule } from 'nestjs-debate-space';
import { keys } from './bench-keys.js';

const SIZES = [10_000, 20_000, 40_000];

type Ending = (store: session.MemoryStore, sids: readonly string[]) => Promise<unknown>;

const endings: Readonly<Record<string, Ending>> = {
  'store.clear()': (store) =>
    new Promise((done) => {
      store.clear(done);
    }),
  'store.destroy() of each at once': (store, sids) =>
    Promise.all(
      sids.map(
        (sid) =>
          new Promise((done) => {
            store.destroy(sid, done);
          }),
      ),
    ),
};

/** In milliseconds. */
interface Measured {
  /** The longest time for which nothing else could run. */
  readonly stillMs: number;
  /** Until the store had called back, as its caller sees it. */
  readonly calledBackMs: number;
  /** Until the plugin had stored each end. */
  readonly storedMs: number;
}

export default async function ends(): Promise<void> {
  for (const [name, end] of Object.entries(endings)) {
    console.log(`\n${name} of MemoryStore, in ms`);
    for (const size of SIZES)
      for (const kind of ['without', 'with'] as const) {
        const { stillMs, calledBackMs, storedMs } = await measure(size, end, kind === 'with');
        console.log(
          `  ${String(size).padStart(6)} sessions, ${kind.padEnd(7)} the plugin: stands still for ${stillMs.toFixed(0)}, ` +
            `calls back after ${calledBackMs.toFixed(0)}, all reported after ${storedMs.toFixed(0)}`,
        );
      }
  }
  process.exit();
}

async function measure(size: number, end: Ending, withPlugin: boolean): Promise<Measured> {
  const row = (n: number): string => JSON.stringify({ cookie: { path: '/' }, user: { uid: `user-${n}` } });
  const rows = Array.from({ length: size }, (_, n) => [`session-${n}`, row(n)] as const);
  const store = Object.assign(new session.MemoryStore(), { sessions: Object.fromEntries(rows) });
  const options = { ...keys, applicationName: 'demo', authUrl: 'http://127.0.0.1:9', session: { store } };
  @Module({ imports: withPlugin ? [DebateSpaceModule.forRoot(options)] : [] })
  class EndsModule {}
  const app = await NestFactory.create(EndsModule, { logger: false });
  await app.init();
  let left = withPlugin ? size : 0;
  const stored = new Promise<void>((resolve) => {
    if (!withPlugin) resolve();
    else
      app.get(DebateSpaceEvents).events$.subscribe(({ type }) => {
        if (type === 'session-ended' && --left === 0) resolve();
      });
  });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await new Promise((resolve) => setTimeout(resolve, 50)); // a histogram begins with its first tick
  delay.reset();
  const begun = performance.now();
  await end(
    store,
    rows.map(([sid]) => sid),
  );
  const calledBackMs = performance.now() - begun;
  await stored;
  const storedMs = performance.now() - begun;
  await new Promise((resolve) => setTimeout(resolve, 10));
  delay.disable();
  await Promise.race([app.close(), new Promise((resolve) => setTimeout(resolve, 10_000).unref())]);
  return { stillMs: delay.max / 1e6, calledBackMs, storedMs };
}
