import sqliteStores from 'connect-sqlite3';
import session from 'express-session';
import { once, type EventEmitter } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fileStores from 'session-file-store';
import { storesInMemory, type OpenedStore, type StoreKind } from '../store-kinds.js';
import { BsonStore } from './bson-store.js';
import { CountingMemoryStore, OwnPromiseStore, PrivateFieldStore } from './small-stores.js';

/** A kind of store of which a plain one and a watched one are compared. */
export interface ContractKind extends StoreKind {
  /** Whether express-session takes it: it inherits from its `Store`. */
  readonly requests?: boolean;
  /** Whether it does its work outside the process: only `setImmediate` and what comes before it can be foretold. */
  readonly remote?: boolean;
  /** Whether calls that overlap may be carried out in another order than they were made in. */
  readonly unordered?: boolean;
  /** Whether it does not survive a callback that throws. */
  readonly brokenByThrow?: boolean;
  /** Methods that do several things, one after the other: another call may come between. */
  readonly interruptible?: readonly string[];
  /** Methods that call back before all of their work is done: what is seen next depends on the disk. */
  readonly early?: readonly string[];
}

const FileStore = fileStores(session);
const SqliteStore = sqliteStores(session);

const withCallbackOnly =
  (...names: string[]): Required<StoreKind>['unbearable'] =>
  (method, { callback }) =>
    !callback && names.includes(method);

const openFileStore = async (): Promise<OpenedStore> => {
  const path = await mkdtemp(join(tmpdir(), 'sessions-'));
  const store = new FileStore({ path, reapInterval: -1, retries: 0, logFn: () => undefined });
  return { store, close: () => rm(path, { recursive: true, force: true, maxRetries: 10 }) };
};

interface Sqlite {
  Database: new (file: string) => { serialize(): void; close(done: () => void): void };
}

const openSqliteStore = async (): Promise<OpenedStore> => {
  const { Database } = createRequire(import.meta.url)('sqlite3') as Sqlite;
  const db = new Database(':memory:');
  db.serialize(); // one statement after the other
  const store = new SqliteStore({ db }) as { readonly client: EventEmitter };
  await once(store.client, 'connect');
  return {
    store,
    close: () =>
      new Promise<void>((resolve) => {
        db.close(resolve);
      }),
  };
};

const OF_EXPRESS = ['MemoryStore of express-session', 'memorystore'];
const memory = storesInMemory.find(({ name }) => name === OF_EXPRESS[0]);

/** What is known about them beyond what a single call tells. */
const KNOWN: Readonly<Record<string, Partial<ContractKind>>> = {
  // It calls its callback without looking whether there is one.
  'MemoryStore of @fastify/session': { unbearable: withCallbackOnly('set', 'destroy', 'get') },
  // It changes something a moment after the call, and reads immediately.
  'promises alone': { unordered: true },
};

/** Stores that need no server. */
export const localKinds: readonly ContractKind[] = [
  ...storesInMemory
    .filter(({ fails }) => !fails)
    .map((kind) => ({ ...kind, requests: OF_EXPRESS.includes(kind.name), ...KNOWN[kind.name] })),
  {
    ...memory,
    name: 'a class of a host',
    open: () => ({ store: new CountingMemoryStore() }),
    requests: true,
  },
  {
    name: 'BSON',
    open: () => ({ store: new BsonStore() }),
    requests: true,
    lacks: ['ids'],
  },
  {
    name: 'a private field',
    open: () => ({ store: new PrivateFieldStore() }),
    requests: true,
    lacks: ['touch', 'ids'],
    unbearable: withCallbackOnly('get', 'all', 'length'),
  },
  {
    name: 'promises of its own kind',
    open: () => ({ store: new OwnPromiseStore() }),
    requests: true,
    lacks: ['touch', 'all', 'ids'],
  },
  {
    name: 'session-file-store',
    open: openFileStore,
    requests: true,
    lacks: ['all', 'ids'],
    remote: true,
    unordered: true,
    early: ['clear'], // it waits for the file that is listed last, and not for all
    unbearable: withCallbackOnly('get', 'touch', 'length', 'clear'),
  },
  {
    name: 'connect-sqlite3',
    open: openSqliteStore,
    requests: true,
    brokenByThrow: true,
    lacks: ['ids'],
    remote: true,
    unbearable: withCallbackOnly('get', 'all', 'length', 'clear', 'touch'),
  },
];

type Servers = (address: () => string) => readonly StoreKind[];

/** Stores whose server a test has started. */
export const remoteKinds = (stores: Servers, address: () => string): readonly ContractKind[] =>
  stores(address)
    .filter(({ fails }) => !fails)
    .map((kind) => ({
      ...kind,
      requests: true,
      remote: true,
      interruptible: ['clear', 'all', 'length', 'ids'], // connect-redis scans, and then does the rest
    }));
