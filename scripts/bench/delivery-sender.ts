// One sender for the benchmark of delivery: sends logouts for as long as it is told to, so many at a time.
import 'reflect-metadata';
import { createSecretKey, randomUUID, type KeyObject } from 'node:crypto';
import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import jwt from 'jsonwebtoken';
import {
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceService,
  type DebateSpaceHttpOptions,
} from 'nestjs-debate-space';
import { Agent, request } from 'undici';
import { keys } from './bench-keys.js';

const [kind = '', url = '', inFlight] = process.argv.slice(2);

export type SenderKind = 'plugin' | 'plugin-http' | 'undici' | 'by-hand' | 'by-hand-with-key';

export interface Sent {
  /** Logouts a second. */
  readonly rate: number;
  /** Of this process, for one logout. */
  readonly cpuMicros: number;
}

const { apiKey, secretKey } = keys;
const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
const tokenByHand = (key: string | KeyObject): string =>
  jwt.sign({ sub: 'alice', jti: randomUUID(), txn: randomUUID(), events }, key, {
    issuer: 'demo',
    audience: apiKey,
    expiresIn: 120,
    header: { alg: 'HS256', typ: 'logout+jwt' },
  });

/** Sends one logout. @returns the status of the answer, or why there was none */
type Send = () => Promise<number | string>;

const senders: Readonly<Record<SenderKind, () => Send | Promise<Send>>> = {
  plugin: () => plugin({}),
  'plugin-http': () => plugin({ adapter: 'http' }),
  undici: () => {
    const dispatcher = new Agent();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const content = `logout_token=${tokenByHand(secretKey)}`;
    return async () => {
      const { statusCode, body } = await request(url, { method: 'POST', headers, body: content, dispatcher });
      await body.text();
      return statusCode;
    };
  },
  // jsonwebtoken takes a string for a private key first, and fails at that, in every call.
  'by-hand': () => byHand(secretKey),
  'by-hand-with-key': () => byHand(createSecretKey(secretKey, 'utf8')),
};
const send = await senders[kind as SenderKind]();

/** From `logoutUser` until the answer of the service is recorded: queue in memory, runner, token and request. */
async function plugin(httpOptions: DebateSpaceHttpOptions): Promise<Send> {
  const applicationName = 'demo';
  const authUrl = new URL(url).origin;
  const options = {
    ...keys,
    applicationName,
    authUrl,
    logout: { concurrency: Number(inFlight) },
    http: httpOptions,
  };

  @Module({ imports: [DebateSpaceModule.forRoot(options)] })
  class HostModule {}

  const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
  const waiting = new Map<string, (answer: number | string) => void>();
  app.get(DebateSpaceEvents).events$.subscribe((event) => {
    const { type } = event;
    if (type !== 'logout-delivered' && type !== 'logout-parked' && type !== 'logout-retrying') return;
    waiting.get(event.uid)?.(type === 'logout-delivered' ? 200 : event.cause);
    waiting.delete(event.uid);
  });
  const service = app.get(DebateSpaceService);
  let count = 0;
  return async () => {
    const uid = `user-${(count += 1)}`;
    const answered = new Promise<number | string>((resolve) => waiting.set(uid, resolve));
    await service.logoutUser(uid);
    return answered;
  };
}

function byHand(key: string | KeyObject): Send {
  const client = axios.create({ httpAgent: new http.Agent({ keepAlive: true }) });
  return async () => {
    const content = new URLSearchParams({ logout_token: tokenByHand(key) });
    return (await client.post(url, content)).status;
  };
}

async function sendUntil(end: number): Promise<number> {
  let count = 0;
  while (performance.now() < end) {
    const status = await send();
    if (status !== 200) throw new Error(`${kind}: a logout was answered with ${status}`);
    count += 1;
  }
  return count;
}

async function measure(ms: number): Promise<Sent> {
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  const loops = Array.from({ length: Number(inFlight) }, () => sendUntil(begun + ms));
  const count = (await Promise.all(loops)).reduce((sum, each) => sum + each, 0);
  const { user, system } = process.cpuUsage(cpu);
  return { rate: (count * 1000) / (performance.now() - begun), cpuMicros: (user + system) / count };
}

process.on('message', ({ ms }: { readonly ms: number }) => {
  void measure(ms).then((sent) => process.send?.(sent));
});
process.once('disconnect', () => process.exit());
process.send?.('ready');
