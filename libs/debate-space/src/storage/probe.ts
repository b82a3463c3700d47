import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { StorageError } from '../errors.js';
import type { Database, Query, Result } from './database.js';
import { SqlStorage } from './sql-storage.js';
import { erasureId } from './rules.js';
import type { Claim, Claims, NewLogout } from './storage.js';

/** No application can have a name that begins like this. */
const APPLICATION = '~probe-';
/** Leftovers of a probe that was killed are removed after this time, in milliseconds. */
const LEFTOVER_MS = 60_000;
const HOSTILE = `'"\\ é 🗑 ? $1 :a %s \\' -- ${'x'.repeat(500)}`;
const LARGE = Number.MAX_SAFE_INTEGER;
const MAX_CLAIMS = 20;
const CLAIM_DELAY_MS = 10;

const CHANGED =
  'turn off what changes results (postProcessResponse, camel, rowsAsArray, nestTables, typeCast), or give a pool of its own';
const FUNCTIONS =
  'give a pool, or a transaction function that takes a connection for itself and rolls back when its work rejects';
/** The most likely cause of a difference, and the cure. */
const CAUSES = {
  arrays: ['the driver returns arrays, or no rows', CHANGED],
  renamed: ['the driver or the ORM renames columns', CHANGED],
  bytes: ['the driver leaves values as bytes (typeCast: false)', CHANGED],
  rounded: ['a type parser of the driver rounds bigint', CHANGED],
  changed: ['the driver or the ORM changes statements or results', CHANGED],
  charset: [
    'the connection has a character set that lacks characters',
    'connect with charset utf8mb4, or create the database of Postgres with ENCODING UTF8',
  ],
  empty: ['sql_mode has EMPTY_STRING_IS_NULL', 'take it out of the sql_mode'],
  key: ['the table has lost its primary key', 'ALTER TABLE … ADD PRIMARY KEY (id)'],
  hidden: [
    'rows are hidden, or were not committed',
    'check that no row-level security applies to the tables, that the connections have autocommit, and that reads do not go to replicas',
  ],
  shared: [
    'query and transaction share one connection, or transaction does not roll back, or the tables are not InnoDB, or the ' +
      'isolation level is READ UNCOMMITTED',
    FUNCTIONS,
  ],
} as const;

/**
 * Names, types and bytes of one row: the first statement at boot.
 * @throws {@link StorageError} like {@link probe}
 */
export async function probeRow(query: Query): Promise<void> {
  const text = `SELECT ? AS some_text, ? AS empty_text, ${LARGE} AS some_number, NULL AS no_value`;
  const [row] = (await query(text, [HOSTILE, ''])).rows as readonly unknown[];
  if (typeof row !== 'object' || row === null || Array.isArray(row)) differs('the row of a SELECT', 'arrays');
  const names = ['empty_text', 'no_value', 'some_number', 'some_text'];
  same('the names of columns', Object.keys(row).toSorted(), names, 'renamed');
  const found = row as Record<string, unknown>;
  same('the type of a text', typeof found.some_text, 'string', 'bytes');
  same('a text', found.some_text, HOSTILE, 'charset');
  same('an empty text', found.empty_text, '', 'empty');
  same('a large number', Number(found.some_number), LARGE, 'rounded');
  same('NULL', found.no_value ?? null, null, 'changed');
}

/**
 * Tries at boot, with rows of an application of its own, what the plugin will do: a database, a pool or an ORM may do something
 * else than it is told, and say nothing. Leaves nothing behind, also when it fails.
 * @throws {@link StorageError} with the difference, its most likely cause, and the cure
 */
export async function probe(database: Database, prefix: string): Promise<void> {
  const application = `${APPLICATION}${randomUUID()}`;
  const storageOn = (on: Database): SqlStorage => new SqlStorage(on, application, { prefix });
  await inTransaction(database, storageOn);
  const jobs = `${prefix}debate_space_jobs`;
  const remove = (): Promise<Result> =>
    database.query(`DELETE FROM ${jobs} WHERE id >= ? AND id < ?`, [`${application}/`, `${application}0`]);
  try {
    await overConnections(database, storageOn);
  } catch (error) {
    await remove().catch(() => undefined);
    throw error;
  }
  same('the number of rows that a DELETE removes', (await remove()).count, 1, 'changed');
  // Read first: a DELETE of MySQL locks each row that it looks at, and another probe would miss its own.
  const leftovers = `SELECT id FROM ${jobs} WHERE id >= ? AND id < ? AND since < ${database.now} - ${LEFTOVER_MS} LIMIT 100`;
  for (const { id } of (await database.query(leftovers, [APPLICATION, '~probe.'])).rows)
    await database.query(`DELETE FROM ${jobs} WHERE id = ?`, [id]);
}

type StorageOn = (database: Database) => SqlStorage;

/** All connections see at once what one of them has stored. */
async function overConnections(database: Database, storageOn: StorageOn): Promise<void> {
  const storage = storageOn(database);
  const logout = newLogout();
  /** On two connections: a pool with a free one does not give the same to both. */
  const read = async (what: string, expected: object): Promise<void> => {
    for (const [job] of await Promise.all([1, 2].map(() => storage.logoutsOf([logout.subject]))))
      same(`${what}, on another connection`, part(job, expected), expected, 'hidden');
  };
  await storage.addLogouts([logout]);
  await read('a logout that was stored', { ...logout, state: 'waiting' });
  let claims: Claims['claims'] = [];
  // Another process that boots may have the index locked for a moment: MySQL then skips the row.
  for (let n = 0; n < MAX_CLAIMS && claims.length === 0; n += 1) {
    if (n > 0) await sleep(CLAIM_DELAY_MS);
    ({ claims } = await storage.claim('logout', 2));
  }
  const claim = claims[0] ?? differs('a claim of a job', 'hidden');
  await database.transaction((query) => storageOn(database.inside(query)).finishLogout(claim, 3));
  await read('a logout that was finished in a transaction', { sealed: '', state: 'done', attempts: 3 });
}

/** In a transaction that is rolled back. */
async function inTransaction(database: Database, storageOn: StorageOn): Promise<void> {
  const logout = newLogout();
  const look = async (): Promise<unknown> => (await storageOn(database).logoutsOf([logout.subject])).length;
  let seen: Promise<unknown> | undefined;
  let isOver = false;
  const work = async (query: Query): Promise<void> => {
    const storage = storageOn(database.inside(query));
    await storage.addLogouts([logout]);
    seen = look().catch((error: unknown) => error); // not awaited here: a pool may have one connection
    await operations(storage, logout);
    isOver = true;
    throw new StorageError('The probe ends');
  };
  const end = await database.transaction(work).catch((error: unknown) => {
    if (!isOver) throw error;
    return 'rejects';
  });
  same('a row that is not committed', await seen, 0, 'shared');
  same('a row that was rolled back', [end, await look()], ['rejects', 0], 'shared');
}

/**
 * Each operation once, so that every statement and every column was tried.
 * @param database in a transaction, which the caller rolls back
 */
export const probeOperations = (database: Database): Promise<void> =>
  operations(new SqlStorage(database, `${APPLICATION}${randomUUID()}`));

async function operations(storage: SqlStorage, logout = newLogout()): Promise<void> {
  const text = HOSTILE;
  const progress = { attempts: 2, failures: 2, rejections: 1, uncertain: 'mark', cause: text };
  const other = { ...newLogout(), subject: 'other' };
  const claim = async (kind: 'logout' | 'erasure'): Promise<Claim> => {
    const [claimed] = (await storage.claim(kind, 1)).claims;
    return claimed ?? differs('a claim of a job', 'hidden');
  };
  await storage.addLogouts([logout]);
  await storage.addLogouts([logout]);
  const added = (await storage.listLogouts('waiting', 2)).length;
  if (added === 0) differs('a row that was added', 'hidden');
  same('a row that is added twice', added, 1, 'key');
  await storage.pause('logout', 0);
  const first = await claim('logout');
  expected('a claimed logout', first, logout);
  await storage.renew([first]);
  await storage.giveBack([first]);
  await storage.postpone(await claim('logout'), 0, progress);
  await storage.park(await claim('logout'), text, progress);
  const [parked] = await storage.listLogouts('parked', 1);
  expected('a parked logout', parked, { ...logout, ...progress, hint: text });
  const changes = [await storage.retryLogout(logout.id), await storage.retryLogout(logout.id)];
  expected('the number of changed rows', changes, [true, false]);
  await storage.addLogouts([other]);
  expected('the oldest logouts', (await storage.listLogouts('waiting', 2)).length, 2);
  const ended = [await storage.supersedeLogouts(['other']), await storage.supersedeLogouts(['other'])];
  expected('the number of changed rows', ended, [1, 0]);
  expected('a discarded logout', await storage.discardLogout(other.id), false);
  await storage.finishLogout(await claim('logout'), 3);
  expected('counts of logouts', await storage.counts('logout'), { waiting: 0, parked: 0 });

  const request = {
    ...({ reference: text, mode: 'delete', requestedBy: text, requestedAt: LARGE } as const),
    ...{ list: undefined, known: undefined, mark: 'new' },
  };
  const user = { id: erasureId(text, 'user'), subject: 'user', formerIds: [], sealed: text };
  const { reference } = await storage.addErasures(request, [user]);
  const known = reference ?? differs('a new reference', 'hidden');
  expected('a new reference', known, { reference: text, requestedBy: text, requestedAt: LARGE, total: 1 });
  expected('users who are there', await storage.addErasures({ ...request, known }, [user]), { added: 0 });
  await storage.claimOverdue([LARGE]);
  expected('a paused reference', await storage.setPaused(known, true, 'paused'), true);
  await storage.setPaused({ ...known, mark: 'paused' }, false, 'resumed');
  expected('a user who is erased', (await storage.erasuresOf(['user'], 'open'))[0]?.job, { sealed: text });
  const erasure = await claim('erasure');
  expected('an erasure that is sent', await storage.markSending(erasure, 'sent'), true);
  expected('counts of erasures', await storage.counts('erasure'), { waiting: 1, parked: 0, oldestAt: LARGE });
  await storage.park(erasure, text, progress);
  expected('a parked erasure', await storage.reference(text), { parked: 1 });
  expected('the number of changed rows', await storage.retryErasures(text), 1);
  const { finished } = await storage.finishErasure(await claim('erasure'), 'erased', 3, text);
  expected('a finished reference', finished, { reference: text, total: 1 });
  const [receipt] = await storage.receipts(text, 1);
  expected('a receipt', receipt?.job, { details: text, outcome: 'erased', attempts: 3 });
  expected('the references', (await storage.references(1))[0], { reference: text, requestedBy: text });
  await storage.cancelErasures({ ...known, mark: 'resumed' }, 'canceled');

  const session = { id: 'session', subject: 'user', sealed: text };
  const live = [
    await storage.registerSession(session, LARGE, 0),
    await storage.registerSession(session, LARGE, 0),
  ];
  const [due] = await storage.dueSessions(1);
  expected('a live session', due, { ...session, expiresAt: LARGE });
  if (due) await storage.postponeSession(due, 0);
  const ends = [
    await storage.endSession(session, newLogout()),
    await storage.endSession(session, newLogout()),
  ];
  expected('the number of changed rows', [...live, ...ends], [true, true, true, false]);

  expected('a free slot', await storage.takeSlot(1, LEFTOVER_MS), 0);
  expected('a taken slot', (await storage.takeSlot(1, LEFTOVER_MS)) > 0, true);
  await storage.prune({ historyMs: -LEFTOVER_MS, receiptsMs: -LEFTOVER_MS });
  expected('what was pruned', (await storage.references(1)).length, 0);
}

const newLogout = (): NewLogout => ({
  id: `000000000000001-${randomUUID()}`,
  subject: 'subject',
  sealed: HOSTILE,
  details: HOSTILE,
});

const expected = (what: string, found: unknown, wanted: unknown): void => {
  same(what, part(found, wanted), wanted, 'changed');
};

/** The properties that are compared. */
function part(found: unknown, wanted: unknown): unknown {
  if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) return found;
  const given = Object(found) as Record<string, unknown>;
  return Object.fromEntries(Object.keys(wanted).map((name) => [name, given[name]]));
}

function same(what: string, found: unknown, wanted: unknown, cause: keyof typeof CAUSES): void {
  if (!isDeepStrictEqual(found, wanted)) differs(what, cause);
}

function differs(what: string, name: keyof typeof CAUSES): never {
  const [cause, cure] = CAUSES[name];
  throw new StorageError(
    `The storage does not work on this connection: there is a difference in ${what}; most likely ${cause}`,
    cure,
  );
}
