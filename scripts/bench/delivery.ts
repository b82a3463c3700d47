// npm run bench -- delivery: logouts a second from `logoutUser` to the answer of a service that says 200 immediately, 16
// in flight, each with a token of its own; beside undici alone, and beside what one would write by hand.
import 'reflect-metadata';
import { createSecretKey, randomUUID, type KeyObject } from 'node:crypto';
import { createServer, Agent as HttpAgent } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import jwt from 'jsonwebtoken';
import { DebateSpaceEvents, DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { Agent, request } from 'undici';
import { ask, inTurn, keys, kill, line, ratios, runProgram, start, type BenchOptions } from './measuring.js';

const IN_FLIGHT = 16;
const ROUND_MS = 1_000;

/** Sends one logout. @returns the status of the answer */
type Send = () => Promise<number>;
const senders: Readonly<Record<string, (url: string) => Promise<Send>>> = {
  'the plugin': (url) => plugin(url, 'undici'),
  "the plugin, http.adapter: 'http'": (url) => plugin(url, 'http'),
  'undici.request, one token for all': (url) => Promise.resolve(undici(url)),
  'undici.request in another process': (url) => Promise.resolve(undici(url)),
  // jsonwebtoken takes a string for a private key first, and fails at that, in every call.
  'axios by hand, its key imported once': (url) =>
    Promise.resolve(byHand(url, createSecretKey(keys.secretKey, 'utf8'))),
  'axios and jsonwebtoken by hand': (url) => Promise.resolve(byHand(url, keys.secretKey)),
};

export async function delivery({ pairs, rounds }: BenchOptions): Promise<void> {
  console.log(`logouts a second, memory storage, ${IN_FLIGHT} in flight; ${pairs} times fresh processes`);
  const names = Object.keys(senders);
  const rates = names.map((): number[] => []);
  for (let pass = 0; pass < pairs; pass += 1) {
    const service = await start<{ url: string }>('./delivery.ts', ['service']);
    const children = [];
    for (const name of names)
      children.push((await start('./delivery.ts', ['sender', name, service.url])).child);
    const measured = await inTurn(
      children.map((child) => async () => (await ask(child, ROUND_MS)) as number),
      rounds,
    );
    for (const [n, values] of measured.entries()) rates[n]?.push(...values);
    for (const child of [...children, service.child]) await kill(child);
  }
  for (const [n, name] of names.entries()) line(name, rates[n] ?? [], ' logouts/s', 0);
  for (const [n, name] of names.entries())
    if (n > 1) line(`the plugin ÷ ${name}`, ratios(rates[0], rates[n]));
}

/** From `logoutUser` until the answer of the service is recorded: queue in memory, runner, token and request. */
async function plugin(url: string, adapter: 'undici' | 'http'): Promise<Send> {
  const options = {
    ...keys,
    applicationName: 'demo',
    authUrl: new URL(url).origin,
    logout: { concurrency: IN_FLIGHT },
    http: adapter === 'http' ? { adapter } : {},
  };
  @Module({ imports: [DebateSpaceModule.forRoot(options)] })
  class HostModule {}

  const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
  const waiting = new Map<string, (status: number) => void>();
  app.get(DebateSpaceEvents).events$.subscribe((event) => {
    if (event.type !== 'logout-delivered' && event.type !== 'logout-retrying') return;
    waiting.get(event.uid)?.(event.type === 'logout-delivered' ? 200 : 500);
    waiting.delete(event.uid);
  });
  const service = app.get(DebateSpaceService);
  let count = 0;
  return async () => {
    const uid = `user-${(count += 1)}`;
    const answered = new Promise<number>((resolve) => waiting.set(uid, resolve));
    await service.logoutUser(uid);
    return answered;
  };
}

const tokenByHand = (key: string | KeyObject): string =>
  jwt.sign(
    {
      sub: 'alice',
      jti: randomUUID(),
      txn: randomUUID(),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    },
    key,
    { issuer: 'demo', audience: keys.apiKey, expiresIn: 120, header: { alg: 'HS256', typ: 'logout+jwt' } },
  );

function undici(url: string): Send {
  const dispatcher = new Agent();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const content = `logout_token=${tokenByHand(keys.secretKey)}`;
  return async () => {
    const { statusCode, body } = await request(url, { method: 'POST', headers, body: content, dispatcher });
    await body.text();
    return statusCode;
  };
}

function byHand(url: string, key: string | KeyObject): Send {
  const client = axios.create({ httpAgent: new HttpAgent({ keepAlive: true }) });
  return async () => (await client.post(url, new URLSearchParams({ logout_token: tokenByHand(key) }))).status;
}

await runProgram({
  service: () => {
    const server = createServer((asked, response) => {
      asked.resume().once('end', () => response.end());
    });
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      process.send?.({ url: `http://127.0.0.1:${port}/auth/logout/demo` });
    });
    return Promise.resolve();
  },
  sender: async (name = '', url = '') => {
    const send = await senders[name]?.(url);
    const measure = async (ms: number): Promise<number> => {
      const begun = performance.now();
      let count = 0;
      const loop = async (): Promise<void> => {
        for (; performance.now() < begun + ms; count += 1)
          if ((await send?.()) !== 200) throw new Error(`${name}: a logout was not delivered`);
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, loop));
      return (count * 1000) / (performance.now() - begun);
    };
    process.on('message', (ms: number) => void measure(ms).then((rate) => process.send?.(rate)));
    process.send?.({});
  },
});
