// One reader for the benchmark of users: an app that goes through all users once, and what its memory grows by.
/* global gc */
import 'reflect-metadata';
import { performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { dryRun, uidItems } from '../../libs/debate-space/dist/erasure/uid-source.js';

const SAMPLED_EVERY = 10_000; // users
const PER_PAGE = 100;
const [kind, authUrl, users] = process.argv.slice(2);
const count = Number(users);

const peak = { heapUsed: 0, arrayBuffers: 0 };
function sample() {
  gc();
  const memory = process.memoryUsage();
  for (const part of Object.keys(peak)) peak[part] = Math.max(peak[part], memory[part]);
}

async function* sampled(things) {
  let seen = 0;
  for await (const thing of things) {
    seen += 1;
    if (seen % SAMPLED_EVERY === 0) sample();
    yield thing;
  }
  if (seen !== count) throw new Error(`${kind}: ${seen} of ${count} came`);
}

/** All uids but the last, and one that nobody has: so all users are walked. */
function* uids() {
  for (let n = 1; n < count; n += 1) yield `user-${n}`;
  yield 'user-nobody';
}

const kinds = {
  list: async (service) => {
    for await (const user of sampled(service.users({ perPage: PER_PAGE }))) void user;
  },
  'dry-run': async (service) => {
    const all = sampled(service.users({ perPage: PER_PAGE }));
    const { known, unknown } = await dryRun(sampled(uidItems(uids())), all, async () => 0);
    if (known !== count - 1 || unknown !== 1) throw new Error(`${known} are known, ${unknown} unknown`);
  },
};

class ReaderModule {}
const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
const plugin = DebateSpaceModule.forRoot({ ...keys, authUrl, http: { rateLimit: false } });
Module({ imports: [plugin] })(ReaderModule);
const app = await NestFactory.createApplicationContext(ReaderModule, { logger: false });
const service = app.get(DebateSpaceService);
await service.listUsers({ perPage: PER_PAGE }); // a token, a connection, compiled code

sample();
const before = { ...peak };
const begun = performance.now();
await kinds[kind](service);
const perSecond = count / ((performance.now() - begun) / 1000);
const [heapMb, buffersMb] = Object.keys(peak).map((part) => (peak[part] - before[part]) / 1e6);
process.send({ perSecond, heapMb, buffersMb });
await app.close();
process.disconnect();
