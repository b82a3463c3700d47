// One process of a host that has users erased: Nest and the plugin, without sessions. Its parent watches it, and kills it.
import 'reflect-metadata';
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, DebateSpaceEvents, DebateSpaceModule } from 'nestjs-debate-space';
import { storageOptions } from './engines.mjs';
import { withFault } from './injected-faults.mjs';

const TOLD_OF = ['erasure-parked', 'erasure-overdue', 'fault'];
/** The list comes slowly enough for a kill to meet its reading. */
const PIECE_BYTES = 512;
const PIECE_MS = 20;

process.on('disconnect', () => process.exit()); // an app without its parent
const settings = JSON.parse(process.argv[2]);
const { list, mode, reference } = settings.erasure;

class HostModule {}
const { storage, ...key } = await storageOptions(settings);
const plugin = DebateSpaceModule.forRoot({
  ...settings.options,
  ...key,
  storage: withFault(settings.fault, storage),
});
Module({ imports: [plugin] })(HostModule);

const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
const erasures = app.get(DebateSpaceErasures);
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (TOLD_OF.includes(event.type)) tell(event);
});

process.on('message', async ({ question, account }) => {
  const answering = account ? accountOf(account) : erasures.status(reference);
  const answer = await answering.catch(() => undefined);
  if (process.connected) process.send({ question, answer });
});

function tell(event) {
  if (process.connected) process.send({ event });
}

/** How it stands, what is proven of all, and what of each user. */
async function accountOf(uids) {
  const receipts = [];
  for await (const receipt of erasures.receipts(reference)) receipts.push(receipt);
  const ofUser = {};
  for (const uid of uids) {
    ofUser[uid] = [];
    for await (const receipt of erasures.receiptsOf(uid)) ofUser[uid].push(receipt);
  }
  return { status: await erasures.status(reference), receipts, ofUser };
}

async function* uids() {
  let rows = 0;
  let rest = '';
  for await (const piece of createReadStream(list, { encoding: 'utf8', highWaterMark: PIECE_BYTES })) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    rows += lines.length;
    tell({ type: 'rows', rows });
    yield* lines;
    await sleep(PIECE_MS);
  }
}

/** `undefined` when nobody has requested them yet. */
async function status() {
  try {
    return await erasures.status(reference);
  } catch (error) {
    if (error.code !== 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE') throw error;
    return undefined;
  }
}

/** As any host would at its start. The last reader reads to the end. */
async function requestAll() {
  if ((await status())?.complete) return;
  try {
    await erasures.requestMany(uids(), { mode, reference, requestedBy: 'a script' });
  } catch (error) {
    if (error.code !== 'ERR_DEBATE_SPACE_ERASURE_CONFLICT') throw error;
    return;
  }
  tell({ type: 'requested' });
}

process.send({ ready: true });
await requestAll();
