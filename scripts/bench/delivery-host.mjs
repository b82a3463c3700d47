// One host for the benchmark of the drain: the plugin as it is, on a storage in which logouts wait as the plugin opens it.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { LogoutQueue } from '../../libs/debate-space/dist/logout/logout-queue.js';
import { Secret } from '../../libs/debate-space/dist/secrets/secret.js';
import { uidCipher } from '../../libs/debate-space/dist/secrets/uid-cipher.js';
import { storageOptions } from '../test-crash/engines.mjs';
import { append, newEntry } from './outbox-entries.mjs';

const FILLED_AT_A_TIME = 500;
const [engine, place, applicationName, authUrl, backlog] = process.argv.slice(2);
const storageKey = 'a key that protects nothing';

/** The same storage, with so many logouts in it before anybody takes one. */
function filled(storage) {
  const open = async (context) => {
    const opened = await storage.open(context);
    const uids = uidCipher([new Secret(storageKey)], context.namespace);
    const queue = new LogoutQueue(opened, storage, { uids, keepFinishedMs: 0 });
    await append(queue, Array.from({ length: Number(backlog) }, newEntry), FILLED_AT_A_TIME);
    return opened;
  };
  return { ...storage, open };
}

class HostModule {}
const { storage } = await storageOptions({ engine, place });
const plugin = DebateSpaceModule.forRoot({
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName,
  authUrl,
  storage: filled(storage),
  storageKey,
});
Module({ imports: [plugin] })(HostModule);
process.once('disconnect', () => process.exit());
await NestFactory.createApplicationContext(HostModule, { logger: false });
process.send({ isReady: true });
