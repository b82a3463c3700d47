import type { Database, RootDatabase } from 'lmdb';
import type { FinishedEntry } from '../outbox.js';
import type { StoredEntry } from './stored-entry.js';

/** In order: a moment, what orders those of one moment, the id. */
export type Place = [at: number, turn: number, id: string];
export type UserPlace = [uidHash: string, at: number, id: string];
export type FinishedPlace = [at: number, uidHash: string, id: string];

/** Everything that one file holds. LMDB knows how many entries each database has, so counting costs nothing. */
export interface LmdbDatabases {
  /** The format of the file, the clock and the pause. */
  readonly meta: Database<unknown, string>;
  /** A {@link StoredEntry} as JSON, by its id. */
  readonly entries: Database<string, string>;
  /** The ids, each in the database of its state, by when they are due or since when they are parked. */
  readonly held: Database<0, Place>;
  readonly pending: Database<0, Place>;
  readonly parked: Database<0, Place>;
  /** The pending ones by when their session ended. */
  readonly pendingByAge: Database<0, Place>;
  readonly ofUser: Database<0, UserPlace>;
  readonly finished: Database<Omit<FinishedEntry, 'id'>, UserPlace>;
  readonly finishedByAge: Database<0, FinishedPlace>;
  /** The erasures. */
  readonly records: Database<string, string>;
}

export function openDatabases(root: RootDatabase, meta: LmdbDatabases['meta']): LmdbDatabases {
  const index = { encoding: 'json' } as const;
  return {
    meta,
    entries: root.openDB('entries', { encoding: 'string', useVersions: true }),
    held: root.openDB('held', index),
    pending: root.openDB('pending', index),
    parked: root.openDB('parked', index),
    pendingByAge: root.openDB('pendingByAge', index),
    ofUser: root.openDB('ofUser', index),
    finished: root.openDB('finished', index),
    finishedByAge: root.openDB('finishedByAge', index),
    records: root.openDB('records', { encoding: 'string' }),
  };
}

/** LMDB keeps the number with the database: it is not counted. */
export function entryCount(database: Pick<Database, 'getStats'>): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}

/** A database and a key in it. */
export interface IndexRow {
  readonly remove: () => unknown;
  readonly put: () => unknown;
  readonly name: string;
}

/** Where an entry is found besides under its id. */
export function indexRows(databases: LmdbDatabases, stored: StoredEntry | undefined): readonly IndexRow[] {
  if (!stored || stored.state === 'unreadable') return [];
  const { entry, uidHash, state, at, turn } = stored;
  const rows = [
    row(state, databases[state], [at, turn, entry.id]),
    row('ofUser', databases.ofUser, [uidHash, entry.endedAt, entry.id]),
  ];
  if (state === 'pending') rows.push(row('byAge', databases.pendingByAge, [entry.endedAt, 0, entry.id]));
  return rows;
}

function row<K extends Place | UserPlace>(name: string, database: Database<0, K>, key: K): IndexRow {
  return {
    name: `${name} ${key.join(' ')}`,
    remove: () => database.remove(key),
    put: () => database.put(key, 0),
  };
}
