// One host for the benchmark of the drain: the plugin as it is, on a storage in which logouts wait as the plugin opens it.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule, type StorageEngine } from 'nestjs-debate-space';
import { storageOptions, type EngineName } from '../test-crash/engines.js';
import { keys } from './bench-keys.js';
import { LogoutQueue, Secret, uidCipher } from './built-queue.js';
import { append, newEntry } from './jobs-entries.js';

const FILLED_AT_A_TIME = 500;
const [engine, place = '', applicationName = '', authUrl = '', backlog] = process.argv.slice(2);
const storageKey = 'a key that protects nothing';

/** The same storage, with so many logouts in it before anybody takes one. */
function filled(engineWithout: StorageEngine): StorageEngine {
  const open: StorageEngine['open'] = async (context) => {
    const opened = await engineWithout.open(context);
    const uids = uidCipher([new Secret(storageKey)], context.namespace);
    const queue = new LogoutQueue(opened, engineWithout, { uids, keepFinishedMs: 0 });
    await append(queue, Array.from({ length: Number(backlog) }, newEntry), FILLED_AT_A_TIME);
    return opened;
  };
  return { ...engineWithout, open };
}

const { storage } = await storageOptions({ engine: engine as EngineName, place });
const plugin = DebateSpaceModule.forRoot({
  ...keys,
  applicationName,
  authUrl,
  storage: filled(storage),
  storageKey,
});

@Module({ imports: [plugin] })
class HostModule {}

process.once('disconnect', () => process.exit());
await NestFactory.createApplicationContext(HostModule, { logger: false });
process.send?.({ isReady: true });
