// One sender for the benchmark of delivery: sends logouts for as long as it is told to, so many at a time.
import 'reflect-metadata';
import { createSecretKey, randomUUID } from 'node:crypto';
import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { URL, URLSearchParams } from 'node:url';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import axios from 'axios';
import jwt from 'jsonwebtoken';
import { DebateSpaceEvents, DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { Agent, request } from 'undici';

const [kind, url, inFlight] = process.argv.slice(2);
const secretKey = 'a secret key that is long enough for HS256';
const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
const tokenByHand = (key) =>
  jwt.sign({ sub: 'alice', jti: randomUUID(), txn: randomUUID(), events }, key, {
    issuer: 'demo',
    audience: 'an-api-key',
    expiresIn: 120,
    header: { typ: 'logout+jwt' },
  });

const senders = {
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
const send = await senders[kind]();

/** From `logoutUser` until the answer of the service is recorded: queue in memory, runner, token and request. */
async function plugin(httpOptions) {
  class HostModule {}
  const applicationName = 'demo';
  const keys = { apiKey: 'an-api-key', secretKey, applicationName, authUrl: new URL(url).origin };
  const options = { ...keys, logout: { concurrency: Number(inFlight) }, http: httpOptions };
  Module({ imports: [DebateSpaceModule.forRoot(options)] })(HostModule);
  const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
  const waiting = new Map();
  app.get(DebateSpaceEvents).events$.subscribe(({ type, uid, cause }) => {
    if (type !== 'logout-delivered' && type !== 'logout-parked' && type !== 'logout-retrying') return;
    waiting.get(uid)(cause ?? 200);
    waiting.delete(uid);
  });
  const service = app.get(DebateSpaceService);
  let count = 0;
  return async () => {
    const uid = `user-${(count += 1)}`;
    const answered = new Promise((resolve) => waiting.set(uid, resolve));
    await service.logoutUser(uid);
    return answered;
  };
}

function byHand(key) {
  const client = axios.create({ httpAgent: new http.Agent({ keepAlive: true }) });
  return async () => {
    const content = new URLSearchParams({ logout_token: tokenByHand(key) });
    return (await client.post(url, content)).status;
  };
}

async function sendUntil(end) {
  let count = 0;
  while (performance.now() < end) {
    const status = await send();
    if (status !== 200) throw new Error(`${kind}: a logout was answered with ${status}`);
    count += 1;
  }
  return count;
}

process.on('message', async ({ ms }) => {
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  const loops = Array.from({ length: Number(inFlight) }, () => sendUntil(begun + ms));
  const count = (await Promise.all(loops)).reduce((sum, each) => sum + each, 0);
  const { user, system } = process.cpuUsage(cpu);
  process.send({ rate: (count * 1000) / (performance.now() - begun), cpuMicros: (user + system) / count });
});
process.once('disconnect', () => process.exit());
process.send('ready');
