// One process of a host that deletes its members: the erasure is requested in the transaction of the deletion, which is
// committed for those who leave and rolled back for those who stay. Its parent watches it, and kills it.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, DebateSpaceModule } from 'nestjs-debate-space';
import pg from 'pg';
import { storageOptions } from './engines.mjs';
import { withFault } from './injected-faults.mjs';

const AT_A_TIME = 2;
/** A transaction stays open for as long as this at most, so that a kill meets it. */
const MAX_OPEN_MS = 150;
/** What the host repeats: serialization failures and deadlocks. */
const REPEATED = ['40001', '40P01'];

process.on('disconnect', () => process.exit()); // an app without its parent
const settings = JSON.parse(process.argv[2]);
const { mode } = settings.erasure;
const leaving = new RegExp(settings.erasure.leaving);

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
const pool = new pg.Pool({ connectionString: settings.place });

process.on('message', async ({ question, account }) => {
  const answer = await (account ? accountOf(account) : waiting()).catch(() => undefined);
  if (process.connected) process.send({ question, answer });
});

function tell(event) {
  if (process.connected) process.send({ event });
}

/** How many erasures the plugin has, and how many of them are not done. */
async function waiting() {
  const counts = { requested: 0, open: 0 };
  for await (const { state } of erasures.list()) {
    counts.requested += 1;
    if (state !== 'done') counts.open += 1;
  }
  return counts;
}

async function accountOf(uids) {
  const ofUser = {};
  for (const uid of uids) {
    ofUser[uid] = [];
    for await (const receipt of erasures.receiptsOf(uid)) ofUser[uid].push(receipt);
  }
  return { ...(await waiting()), ofUser };
}

async function membersLeft() {
  const { rows } = await pool.query('SELECT uid FROM member ORDER BY random()');
  return rows.map(({ uid }) => uid);
}

async function deleteMember(uid) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const { rowCount } = await client.query('DELETE FROM member WHERE uid = $1', [uid]);
    if (rowCount > 0) {
      const query = (text, values) => client.query(text, values);
      await erasures.request({ uid, mode, transaction: { query } });
      await sleep(Math.random() * MAX_OPEN_MS);
    }
    const end = rowCount > 0 && leaving.test(uid) ? 'COMMIT' : 'ROLLBACK';
    await client.query(end);
    if (rowCount > 0 && end === 'ROLLBACK') tell({ type: 'rolled-back' });
  } catch (error) {
    await client.query('ROLLBACK');
    if (!REPEATED.includes(error.code)) throw error;
  } finally {
    client.release();
  }
}

/** Until all who leave are gone; those who stay are tried again and again meanwhile. */
async function deleteMembers() {
  for (let left = await membersLeft(); left.some((uid) => leaving.test(uid)); left = await membersLeft()) {
    const uids = left.values();
    const loop = async () => {
      for (const uid of uids) await deleteMember(uid);
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, loop));
  }
}

process.send({ ready: true });
await deleteMembers();
