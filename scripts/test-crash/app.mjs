/* global setTimeout */
// One app process: Nest, express-session and the plugin, as a host has them. Its parent watches it, and kills it.
import 'reflect-metadata';
import { Controller, HttpCode, Module, Post, Req, UnauthorizedException } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { DebateSpaceEvents, DebateSpaceModule, DebateSpaceOutbox } from 'nestjs-debate-space';
import { storageOptions } from './engines.mjs';
import { withFault } from './injected-faults.mjs';
import { losingAnswers } from './lost-answers.mjs';
import { ParentStore } from './session-store.mjs';

const TOLD_OF = ['storage-degraded', 'storage-recovered', 'logout-parked', 'shutdown-incomplete', 'fault'];
const WAITING = ['held', 'pending', 'parked'];

process.on('disconnect', () => process.exit()); // an app without its parent
const settings = JSON.parse(process.argv[2]);

class HostController {
  login(request) {
    request.session.user = request.headers['x-user'];
  }

  async logout(request) {
    const { user } = request.session;
    if (user === undefined) throw new UnauthorizedException();
    await new Promise((resolve, reject) => {
      request.session.destroy((error) => (error ? reject(error) : resolve()));
    });
    // By the clock of the app; the timers of `node:timers/promises` do not follow it.
    await new Promise((resolve) => setTimeout(resolve, settings.answerMs ?? 0));
    return user;
  }
}
// Decorators by hand: this file runs as it stands, without a compiler.
for (const method of ['login', 'logout']) {
  const descriptor = Object.getOwnPropertyDescriptor(HostController.prototype, method);
  for (const decorator of [Post(method), HttpCode(200)])
    decorator(HostController.prototype, method, descriptor);
  Req()(HostController.prototype, method, 0);
}
Controller()(HostController);

class HostModule {}
const { storage, ...key } = await storageOptions(settings);
const plugin = DebateSpaceModule.forRoot({
  ...settings.options,
  ...key,
  storage: withFault(settings.fault, settings.losesAnswers ? losingAnswers(storage) : storage),
});
Module({ imports: [plugin], controllers: [HostController] })(HostModule);

const app = await NestFactory.create(HostModule, { logger: false, forceCloseConnections: true });
const secret = 'only for crashes, and long enough for it';
app.use(session({ secret, resave: false, saveUninitialized: false, store: new ParentStore() }));
app.enableShutdownHooks();
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (TOLD_OF.includes(event.type) && process.connected) process.send({ event });
});

process.on('message', async ({ question, uids, retry }) => {
  if (question === undefined) return;
  const logouts = app.get(DebateSpaceOutbox);
  const answering = retry ? retryAll(logouts) : waitingOf(logouts, uids);
  const answer = await answering.catch(() => undefined);
  if (process.connected) process.send({ question, answer });
});

/** Where the logouts of these users stand: of those that wait no more, nothing. */
async function waitingOf(logouts, uids) {
  const waiting = {};
  for (const uid of uids) {
    const { state } = (await logouts.history(uid)).find((logout) => WAITING.includes(logout.state)) ?? {};
    if (state !== undefined) waiting[uid] = state;
  }
  return waiting;
}

async function retryAll(logouts) {
  const parked = await logouts.parked({ limit: 1000 });
  for (const { id } of parked) await logouts.retry(id);
  return parked.length;
}

await app.listen(0, '127.0.0.1');
process.send({ ready: await app.getUrl() });
