// One process of a host that deletes its members: the erasure is requested in the transaction of the deletion, which is
// committed for those who leave and rolled back for those who stay. Its parent watches it, and kills it.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, type ErasureMode } from 'nestjs-debate-space';
import pg from 'pg';
import { codeOf } from '../caught.js';
import { answerParent, beginApp, pluginOf, tell } from './app-process.js';
import { tellParent, type AppSettings } from './messages.js';
import { receiptsByUser } from './receipts-by-user.js';
import type { ErasureCounts, TransactionAccount } from './transaction-trial.js';

interface TransactionSettings extends AppSettings {
  readonly erasure: { readonly mode: ErasureMode; readonly leaving: string };
}

const AT_A_TIME = 2;
/** A transaction stays open for as long as this at most, so that a kill meets it. */
const MAX_OPEN_MS = 150;
/** What the host repeats: serialization failures and deadlocks. */
const REPEATED: readonly unknown[] = ['40001', '40P01'];

const settings = beginApp() as TransactionSettings;
const { mode } = settings.erasure;
const leaving = new RegExp(settings.erasure.leaving);

const app = await NestFactory.createApplicationContext(await pluginOf(settings), { logger: false });
const erasures = app.get(DebateSpaceErasures);
const pool = new pg.Pool({ connectionString: settings.place });

answerParent(({ account }) => (account ? accountOf(account) : waiting()));

/** How many erasures the plugin has, and how many of them are not done. */
async function waiting(): Promise<ErasureCounts> {
  const counts = { requested: 0, open: 0 };
  for await (const { state } of erasures.list()) {
    counts.requested += 1;
    if (state !== 'done') counts.open += 1;
  }
  return counts;
}

async function accountOf(uids: readonly string[]): Promise<TransactionAccount> {
  return { ...(await waiting()), ofUser: await receiptsByUser(erasures, uids) };
}

async function membersLeft(): Promise<string[]> {
  const { rows } = await pool.query<{ uid: string }>('SELECT uid FROM member ORDER BY random()');
  return rows.map(({ uid }) => uid);
}

async function deleteMember(uid: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const { rowCount } = await client.query('DELETE FROM member WHERE uid = $1', [uid]);
    const isThere = rowCount !== null && rowCount > 0;
    if (isThere) {
      const query = (text: string, values: string[]): Promise<unknown> => client.query(text, values);
      await erasures.request({ uid, mode, transaction: { query } });
      await sleep(Math.random() * MAX_OPEN_MS);
    }
    const end = isThere && leaving.test(uid) ? 'COMMIT' : 'ROLLBACK';
    await client.query(end);
    if (isThere && end === 'ROLLBACK') tell({ type: 'rolled-back' });
  } catch (error) {
    await client.query('ROLLBACK');
    if (!REPEATED.includes(codeOf(error))) throw error;
  } finally {
    client.release();
  }
}

/** Until all who leave are gone; those who stay are tried again and again meanwhile. */
async function deleteMembers(): Promise<void> {
  for (let left = await membersLeft(); left.some((uid) => leaving.test(uid)); left = await membersLeft()) {
    const uids = left.values();
    const loop = async (): Promise<void> => {
      for (const uid of uids) await deleteMember(uid);
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, loop));
  }
}

tellParent({ ready: true });
await deleteMembers();
