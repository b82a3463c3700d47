// One process of a host that has users erased: Nest and the plugin, without sessions. Its parent watches it, and kills it.
import 'reflect-metadata';
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  type ErasureMode,
  type ErasureReceipt,
  type ErasureStatus,
} from 'nestjs-debate-space';
import { codeOf } from '../caught.js';
import { answerParent, beginApp, pluginOf, tell } from './app-process.js';
import type { ErasureAccount } from './erasure-account.js';
import { tellParent, type AppEvent, type AppSettings } from './messages.js';
import { receiptsByUser } from './receipts-by-user.js';

interface ErasureSettings extends AppSettings {
  readonly erasure: { readonly list: string; readonly mode: ErasureMode; readonly reference: string };
}

const TOLD_OF: readonly AppEvent['type'][] = ['erasure-parked', 'erasure-overdue', 'fault'];
/** The list comes slowly enough for a kill to meet its reading. */
const PIECE_BYTES = 512;
const PIECE_MS = 20;

const settings = beginApp() as ErasureSettings;
const { list, mode, reference } = settings.erasure;

const app = await NestFactory.createApplicationContext(await pluginOf(settings), { logger: false });
const erasures = app.get(DebateSpaceErasures);
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (TOLD_OF.includes(event.type)) tell(event);
});

answerParent(({ account }) => (account ? accountOf(account) : erasures.status(reference)));

/** How it stands, what is proven of all, and what of each user. */
async function accountOf(uids: readonly string[]): Promise<ErasureAccount> {
  const receipts: ErasureReceipt[] = [];
  for await (const receipt of erasures.receipts(reference)) receipts.push(receipt);
  return { status: await erasures.status(reference), receipts, ofUser: await receiptsByUser(erasures, uids) };
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
