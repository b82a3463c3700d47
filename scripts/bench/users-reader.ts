// One reader for the benchmark of users: an app that goes through all users once, and what its memory grows by.
import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { keys } from './bench-keys.js';

const uidSource = new URL('../../libs/debate-space/build/erasure/uid-source.js', import.meta.url);
const { dryRun, uidItems } = (await import(
  uidSource.href
)) as typeof import('../../libs/debate-space/src/erasure/uid-source.js');

const SAMPLED_EVERY = 10_000; // users
const PER_PAGE = 100;
const [kind, authUrl = '', users] = process.argv.slice(2);
const count = Number(users);

export type Reading = 'list' | 'dry-run' | 'orphans';

export interface Growth {
  /** Users. */
  readonly perSecond: number;
  readonly heapMb: number;
  readonly buffersMb: number;
}

const peak = { heapUsed: 0, arrayBuffers: 0 };
function sample(): void {
  globalThis.gc?.();
  const memory = process.memoryUsage();
  peak.heapUsed = Math.max(peak.heapUsed, memory.heapUsed);
  peak.arrayBuffers = Math.max(peak.arrayBuffers, memory.arrayBuffers);
}

async function* sampled<Thing>(things: AsyncIterable<Thing>): AsyncGenerator<Thing> {
  let seen = 0;
  for await (const thing of things) {
    seen += 1;
    if (seen % SAMPLED_EVERY === 0) sample();
    yield thing;
  }
  if (seen !== count) throw new Error(`${String(kind)}: ${seen} of ${count} came`);
}

/** All uids but the last, and one that nobody has: so all users are walked. */
function* uids(): Generator<string> {
  for (let n = 1; n < count; n += 1) yield `user-${n}`;
  yield 'user-nobody';
}

const kinds: Readonly<Record<Reading, () => Promise<void>>> = {
  list: async () => {
    const all = sampled(service.users({ perPage: PER_PAGE }));
    while (!(await all.next()).done);
  },
  'dry-run': async () => {
    const all = sampled(service.users({ perPage: PER_PAGE }));
    const { known, notFound } = await dryRun(sampled(uidItems(uids())), all, () => Promise.resolve(0));
    if (known !== count - 1 || notFound !== 1) throw new Error(`${known} are known, ${notFound} not found`);
  },
  // Every fifth user has no account.
  orphans: async () => {
    const hasAccount = (uid: string) => Number(uid.slice('user-'.length)) % 5 > 0;
    const all = service.orphans((uids) => uids.filter(hasAccount))[Symbol.asyncIterator]();
    let orphans = 0;
    for (; !(await all.next()).done; orphans += 1) if (orphans % (SAMPLED_EVERY / 5) === 0) sample();
    if (orphans !== Math.floor(count / 5)) throw new Error(`${orphans} orphans were found`);
  },
};

const plugin = DebateSpaceModule.forRoot({
  ...keys,
  applicationName: 'demo',
  authUrl,
  http: { rateLimit: false },
});

@Module({ imports: [plugin] })
class ReaderModule {}

const app = await NestFactory.createApplicationContext(ReaderModule, { logger: false });
const service = app.get(DebateSpaceService);
await service.listUsers({ perPage: PER_PAGE }); // a token, a connection, compiled code

sample();
const before = { ...peak };
const begun = performance.now();
await kinds[kind as Reading]();
const perSecond = count / ((performance.now() - begun) / 1000);
const heapMb = (peak.heapUsed - before.heapUsed) / 1e6;
const buffersMb = (peak.arrayBuffers - before.arrayBuffers) / 1e6;
process.send?.({ perSecond, heapMb, buffersMb } satisfies Growth);
await app.close();
process.disconnect();
