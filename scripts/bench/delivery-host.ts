// One host for the benchmark of the drain: the plugin as it is, on a storage in which logouts wait as the plugin opens it.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule, type StorageEngine } from 'nestjs-debate-space';
import type { EngineName } from '../test-crash/engines.js';
import { keys } from './bench-keys.js';
import { openEngine } from './engines.js';
import { fill, logoutsOf } from './new-logout.js';

const [engine, place = '', applicationName = '', authUrl = '', backlog] = process.argv.slice(2);
const storageKey = 'a key that protects nothing';

/** The same storage, with so many logouts in it before anybody takes one. */
function filled(empty: StorageEngine): StorageEngine {
  const open: StorageEngine['open'] = async (application) => {
    const opened = await empty.open(application);
    await fill(opened.storage, logoutsOf(opened.storage, applicationName, storageKey), Number(backlog));
    return opened;
  };
  return { ...empty, open };
}

const { storage } = await openEngine(engine as EngineName, place);
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
