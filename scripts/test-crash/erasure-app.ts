// One process of a host that has users erased: Nest and the plugin, without sessions. Its parent watches it, and kills it.
import 'reflect-metadata';
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceModule,
  type ErasureMode,
  type ErasureReceipt,
  type ErasureStatus,
} from 'nestjs-debate-space';
import { codeOf } from '../caught.js';
import { storageOptions } from './engines.js';
import type { ErasureAccount } from './erasure-account.js';
import { withFault } from './injected-faults.js';
import { tellParent, type AppEvent, type AppSettings, type FromParent } from './messages.js';

interface ErasureSettings extends AppSettings {
  readonly erasure: { readonly list: string; readonly mode: ErasureMode; readonly reference: string };
}

const TOLD_OF: readonly AppEvent['type'][] = ['erasure-parked', 'erasure-overdue', 'fault'];
/** The list comes slowly enough for a kill to meet its reading. */
const PIECE_BYTES = 512;
const PIECE_MS = 20;

process.on('disconnect', () => process.exit()); // an app without its parent
const settings = JSON.parse(process.argv[2] ?? '') as ErasureSettings;
const { list, mode, reference } = settings.erasure;

const { storage, ...key } = await storageOptions(settings);
const plugin = DebateSpaceModule.forRoot({
  ...settings.options,
  ...key,
  storage: withFault(settings.fault, storage),
});

@Module({ imports: [plugin] })
class HostModule {}

const app = await NestFactory.createApplicationContext(HostModule, { logger: false });
const erasures = app.get(DebateSpaceErasures);
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (TOLD_OF.includes(event.type)) tell(event);
});

process.on('message', (message) => {
  void answer(message as FromParent);
});

async function answer(message: FromParent): Promise<void> {
  if (!('question' in message)) return;
  const { question, account } = message;
  const answering: Promise<unknown> = account ? accountOf(account) : erasures.status(reference);
  tellParent({ question, answer: await answering.catch(() => undefined) });
}

function tell(event: AppEvent): void {
  tellParent({ event });
}

/** How it stands, what is proven of all, and what of each user. */
async function accountOf(uids: readonly string[]): Promise<ErasureAccount> {
  const receipts: ErasureReceipt[] = [];
  for await (const receipt of erasures.receipts(reference)) receipts.push(receipt);
  const ofUser: Record<string, ErasureReceipt[]> = {};
  for (const uid of uids) {
    const own: ErasureReceipt[] = (ofUser[uid] = []);
    for await (const receipt of erasures.receiptsOf(uid)) own.push(receipt);
  }
  return { status: await erasures.status(reference), receipts, ofUser };
}

async function* uids(): AsyncGenerator<string> {
  let rows = 0;
  let rest = '';
  for await (const piece of createReadStream(list, { encoding: 'utf8', highWaterMark: PIECE_BYTES })) {
    const lines = (rest + String(piece)).split('\n');
    rest = lines.pop() ?? '';
    rows += lines.length;
    tell({ type: 'rows', rows });
    yield* lines;
    await sleep(PIECE_MS);
  }
}

/** `undefined` when nobody has requested them yet. */
async function status(): Promise<ErasureStatus | undefined> {
  try {
    return await erasures.status(reference);
  } catch (error) {
    if (codeOf(error) !== 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE') throw error;
    return undefined;
  }
}

/** As any host would at its start. The last reader reads to the end. */
async function requestAll(): Promise<void> {
  if ((await status())?.complete) return;
  try {
    await erasures.requestMany(uids(), { mode, reference, requestedBy: 'a script' });
  } catch (error) {
    if (codeOf(error) !== 'ERR_DEBATE_SPACE_ERASURE_CONFLICT') throw error;
    return;
  }
  tell({ type: 'requested' });
}

tellParent({ ready: true });
await requestAll();
