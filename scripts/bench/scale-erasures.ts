// One app for the benchmark of scale: requests the erasure of so many users in one list, and carries them out.
import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, DebateSpaceModule } from 'nestjs-debate-space';
import type { EngineName } from '../test-crash/engines.js';
import { keys } from './bench-keys.js';
import { openEngine } from './engines.js';

const SAMPLED_EVERY_MS = 2_000;
const CONCURRENCY = 16;
const [engine, place = '', applicationName = '', url = '', size] = process.argv.slice(2);
const count = Number(size);

export interface ErasedUsers {
  readonly requestedPerSecond: number;
  readonly donePerSecond: number;
  /** What the heap grew by. */
  readonly heapMb: number;
}

const { storage, storageKey } = await openEngine(engine as EngineName, place);
const plugin = DebateSpaceModule.forRoot({
  ...keys,
  applicationName,
  authUrl: url,
  baseUrl: `${url}/api`,
  http: { rateLimit: false },
  erasure: { concurrency: CONCURRENCY },
  storage,
  storageKey,
});

@Module({ imports: [plugin] })
class HostModule {}

const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
const erasures = app.get(DebateSpaceErasures);

function* uids(prefix: string, length: number): Generator<string> {
  for (let n = 0; n < length; n += 1) yield `${prefix}-${n}`;
}
async function untilDone(reference: string): Promise<void> {
  while ((await erasures.status(reference)).state !== 'done') await sleep(100);
}

// A token, connections, compiled code.
await erasures.requestMany(uids('warm-up', 200), { mode: 'anonymize', reference: 'warm-up' });
await untilDone('warm-up');

const heapUsed = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
const before = heapUsed();
let most = before;
const sampling = setInterval(() => {
  most = Math.max(most, heapUsed());
}, SAMPLED_EVERY_MS);
const reference = 'all';
let begun = performance.now();
await erasures.requestMany(uids('user', count), { mode: 'anonymize', reference });
const requestedPerSecond = (1000 * count) / (performance.now() - begun);
begun = performance.now();
const { done: already } = await erasures.status(reference); // the runner has begun
await untilDone(reference);
const donePerSecond = (1000 * (count - already)) / (performance.now() - begun);
clearInterval(sampling);
const { done } = await erasures.status(reference);
if (done !== count) throw new Error(`${done} of ${count} are done`);
const heapMb = (Math.max(most, heapUsed()) - before) / 1e6;
process.send?.({ requestedPerSecond, donePerSecond, heapMb } satisfies ErasedUsers);
await app.close();
process.exit(); // the pool of a server may still be connected
