import { StorageError } from '../errors.js';
import type { Database } from './database.js';

export const TABLES = [
  'debate_space_jobs',
  'debate_space_references',
  'debate_space_sessions',
  'debate_space_rate',
  'debate_space_facts',
] as const;
export type Table = (typeof TABLES)[number];

export type Dialect = Database['dialect'];
/**
 * A statement for every dialect, or one for each. `{jobs}` stands for the name of a table, `{jobs_due}` for that of an index,
 * `{schema}` for the schema of Postgres and its dot, `$key`, `$text`, `$int` and `$moment` for types.
 */
type Change = string | Partial<Readonly<Record<Dialect, string>>>;
export type Migration = readonly Change[];

/** Of Postgres. */
export const DEFAULT_SCHEMA = 'public';

// Autovacuum comes after 2 % of the rows and not after 20 %: a queue changes all of its rows several times.
const POSTGRES_SETTINGS =
  'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)';

const TYPES = {
  postgres: {
    $key: 'text COLLATE "C"',
    $text: 'text',
    $int: 'integer',
    $moment: 'bigint',
    $end: POSTGRES_SETTINGS,
  },
  mysql: {
    $key: 'varchar(180) CHARACTER SET ascii COLLATE ascii_bin',
    $text: 'text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
    $int: 'integer',
    $moment: 'bigint',
    $end: 'ENGINE=InnoDB ROW_FORMAT=DYNAMIC',
  },
  sqlite: { $key: 'text', $text: 'text', $int: 'integer', $moment: 'integer' },
} as const;

/** The name of an index, its columns, and the rows that are in it. MySQL has no partial indexes. */
type Index = readonly [name: string, columns: string, where?: string];

/*
 * The tables of the first release.
 *
 * Ids and queues begin with the application and a slash, so that only one index fits a claim: the one that has the rows in
 * the order in which they are due. `queue` is `APP/logouts`, `APP/erasures`, or the id of a reference that is a list.
 */
const FIRST: Migration = [
  ...table(
    'jobs',
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, kind $key NOT NULL, queue $key NOT NULL, reference $key,
     subject $key NOT NULL, state $key NOT NULL, outcome $key, cause $text, hint $text, details $text NOT NULL,
     attempts $int NOT NULL, failures $int NOT NULL, rejections $int NOT NULL, uncertain $int NOT NULL,
     due_at $moment, token $key, since $moment NOT NULL, ended_at $moment, sealed $text NOT NULL`,
    ['due', 'queue, due_at', 'due_at IS NOT NULL'],
    ['ended', 'queue, state, ended_at', 'ended_at IS NOT NULL'],
    ['subject', 'subject'],
    ['receipts', 'queue, id', `kind = 'erasure' AND state = 'done'`],
  ),
  // `overdue_ms` is the greatest age that was reported.
  ...table(
    'references',
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, name $text NOT NULL, mode $key NOT NULL, requested_by $text,
     is_list $int NOT NULL, reader $key, complete $int NOT NULL, paused $int NOT NULL, canceled $int NOT NULL,
     started $int NOT NULL, requested_at $moment NOT NULL, resumed_at $moment, overdue_ms $moment NOT NULL, finished_at $moment,
     total $int NOT NULL, users_erased $int NOT NULL, users_not_found $int NOT NULL, users_vetoed $int NOT NULL,
     users_canceled $int NOT NULL`,
    ['lists', 'app, is_list, finished_at, requested_at'],
    ['newest', 'app, requested_at, id'],
    ['unfinished', 'app, finished_at, requested_at'],
  ),
  ...table(
    'sessions',
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, subject $key NOT NULL, expires_at $moment NOT NULL, due_at $moment,
     token $key, ended_at $moment, sealed $text NOT NULL`,
    ['due', 'app, due_at', 'due_at IS NOT NULL'],
    ['ended', 'app, ended_at', 'ended_at IS NOT NULL'],
  ),
  ...table(
    'rate',
    'id $key NOT NULL PRIMARY KEY, app $key NOT NULL, slot $int NOT NULL, taken_at $moment NOT NULL',
    ['taken', 'app, taken_at'], // SKIP LOCKED of MySQL locks whatever it has to sort
  ),
  ...table('facts', 'id $key NOT NULL PRIMARY KEY, value $moment NOT NULL'),
];

/** Keyed marks, by which a change in the database by somebody without a storage key is found; and a smaller index for MySQL. */
const SECOND: Migration = [
  // Keyed marks over the meaning of a reference, and over `uncertain`.
  column('references', 'mark $key'),
  column('jobs', 'uncertain_mark $key'),
  // MySQL has no partial indexes: jobs that do not wait have no `due_queue`, so that a claim does not read past them.
  {
    mysql:
      'ALTER TABLE {jobs} ADD COLUMN due_queue $key GENERATED ALWAYS AS (CASE WHEN due_at IS NULL THEN NULL ELSE queue END) VIRTUAL',
  },
  { mysql: 'CREATE INDEX {jobs_waiting} ON {jobs} (due_queue, due_at)' },
  { mysql: 'DROP INDEX {jobs_due} ON {jobs}' },
];

/**
 * The tables, one version after the other. A migration has been run somewhere as soon as it was released: change nothing in it,
 * and add another one. Processes of the version before go on working with the new tables until they are replaced: a new
 * column is nullable or has a default, and nothing is renamed or dropped that they use.
 */
export const MIGRATIONS: readonly Migration[] = [FIRST, SECOND];

/**
 * The statements of all migrations after a version. Each migration is recorded at its end.
 * @param place of Postgres the schema of the tables, of MySQL the beginning of their names
 * @throws {@link StorageError} when `place` is not usable
 */
export function statementsOf(
  dialect: Dialect,
  place?: string,
  from = 0,
  migrations: readonly Migration[] = MIGRATIONS,
): readonly string[] {
  const prefix = tablePrefix(dialect, place);
  return migrations.slice(from).flatMap((migration, n) => {
    const version = `INSERT INTO {facts} (id, value) VALUES ('version', ${from + n + 1})`;
    const onConflict = 'ON CONFLICT (id) DO UPDATE SET value = excluded.value';
    const record: Change = {
      postgres: `${version} ${onConflict}`,
      sqlite: `${version} ${onConflict}`,
      mysql: `${version} ON DUPLICATE KEY UPDATE value = VALUES(value)`,
    };
    return [...migration, record]
      .map((change) => (typeof change === 'string' ? change : change[dialect]))
      .filter((text) => text !== undefined)
      .map((text) => filledIn(text, dialect, prefix));
  });
}

/** With the types and the names of a dialect. An index of Postgres is named without its schema. */
function filledIn(text: string, dialect: Dialect, prefix: string): string {
  const types: Readonly<Record<string, string>> = TYPES[dialect];
  const schema = dialect === 'postgres' ? prefix : '';
  return text
    .replace(/\$\w+/g, (type) => types[type] ?? type)
    .replace(/\{(\w+)\}/g, (_, name: string) => {
      if (name === 'schema') return schema;
      const whole = `debate_space_${name}`;
      return TABLES.includes(whole as Table) || schema === '' ? `${prefix}${whole}` : whole;
    })
    .replace(/\s+/g, ' ');
}

/** @throws {@link StorageError} when there can be no such schema of Postgres, or names of MySQL cannot begin so */
export function tablePrefix(dialect: Dialect, place?: string): string {
  if (dialect === 'sqlite') return '';
  if (dialect === 'postgres') {
    const schema = place ?? DEFAULT_SCHEMA;
    if (/^[\w-]{1,63}$/.test(schema)) return `"${schema}".`;
    const hint = 'give the name of a schema, of letters, digits, _ and -';
    throw new StorageError('The option schema of postgresStorage is not usable', hint);
  }
  if (/^\w{0,30}$/.test(place ?? '')) return place ?? '';
  const hint = 'give at most 30 letters, digits and _';
  throw new StorageError('The option prefix of mysqlStorage is not usable', hint);
}

function table(name: string, columns: string, ...indexes: readonly Index[]): Migration {
  const create = `CREATE TABLE IF NOT EXISTS {${name}} (${columns}`;
  // MySQL has no CREATE INDEX IF NOT EXISTS. Its rows themselves are in the order of their ids, so that it needs no receipts.
  const inside = indexes
    .filter(([of]) => of !== 'receipts')
    .map(([of, on]) => `, INDEX {${name}_${of}} (${on})`);
  const after = indexes.map(([of, on, where]): Change => {
    const text = `CREATE INDEX IF NOT EXISTS {${name}_${of}} ON {${name}} (${on})${where === undefined ? '' : ` WHERE ${where}`}`;
    return { postgres: text, sqlite: text };
  });
  const created = {
    postgres: `${create}) $end`,
    sqlite: `${create})`,
    mysql: `${create}${inside.join('')}) $end`,
  };
  return [created, ...after];
}

/** A new column. Use it for each one: a boot that stopped half-way is repeated, and may find the column there already. */
function column(name: string, definition: string): Change {
  const add = `ALTER TABLE {${name}} ADD COLUMN ${definition}`;
  return { postgres: add.replace('COLUMN', 'COLUMN IF NOT EXISTS'), mysql: add, sqlite: add };
}
