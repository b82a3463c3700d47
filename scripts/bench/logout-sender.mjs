/* global AbortController */
// One sender for the benchmark of delivery: sends logouts for as long as it is told to, so many at a time.
import { createSecretKey, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { URLSearchParams } from 'node:url';
import axios from 'axios';
import jwt from 'jsonwebtoken';
import { Agent, request } from 'undici';
import { LogoutTokenSigner } from '../../libs/debate-space/dist/logout/logout-token-signer.js';
import { LogoutRoute } from '../../libs/debate-space/dist/service/logout-route.js';
import { Transport } from '../../libs/debate-space/dist/service/transport.js';
import { Secret } from '../../libs/debate-space/dist/secrets/secret.js';

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
  plugin: () => {
    const signer = new LogoutTokenSigner({
      secretKey: new Secret(secretKey),
      secretKeyEncoding: 'utf8',
      algorithm: 'HS256',
      issuer: 'demo',
      audience: 'an-api-key',
      lifetimeSeconds: 120,
    });
    const route = new LogoutRoute(new Transport(10_000), url);
    const never = new AbortController().signal;
    setMaxListeners(0, never);
    return async () => {
      const token = await signer.sign({ uid: 'alice', id: randomUUID() });
      return (await route.send(token, never)).status;
    };
  },
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
const send = senders[kind]();

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
  const begun = performance.now();
  const loops = Array.from({ length: Number(inFlight) }, () => sendUntil(begun + ms));
  const counts = await Promise.all(loops);
  const seconds = (performance.now() - begun) / 1000;
  process.send({ rate: counts.reduce((sum, count) => sum + count, 0) / seconds });
});
process.send('ready');
