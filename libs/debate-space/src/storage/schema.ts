import type { Database } from './database.js';

/** Of the tables. A change is additive, so that the version before can go on working with them. */
export const SCHEMA_VERSION = 1;

export const TABLES = [
  'debate_space_jobs',
  'debate_space_references',
  'debate_space_sessions',
  'debate_space_rate',
  'debate_space_facts',
] as const;
export type Table = (typeof TABLES)[number];

// Autovacuum comes after 2 % of the rows and not after 20 %: a queue changes all of its rows several times.
const POSTGRES_SETTINGS =
  'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)';

const TYPES = {
  postgres: {
    $key: 'text COLLATE "C"',
    $text: 'text',
    $int: 'integer',
    $moment: 'bigint',
    end: POSTGRES_SETTINGS,
  },
  mysql: {
    $key: 'varchar(180) CHARACTER SET ascii COLLATE ascii_bin',
    $text: 'text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
    $int: 'integer',
    $moment: 'bigint',
    end: 'ENGINE=InnoDB ROW_FORMAT=DYNAMIC',
  },
  sqlite: { $key: 'text', $text: 'text', $int: 'integer', $moment: 'integer', end: '' },
} as const;

/**
 * The name of an index, its columns, and the rows that are in it. MySQL has no partial indexes: there, `due` and `ended` have
 * all rows, and `receipts` is not needed, because the rows themselves are in the order of their ids.
 */
type Index = readonly [name: string, columns: string, where?: string];

/*
 * Ids and queues begin with the application and a slash, so that only one index fits a claim: the one that has the rows in
 * the order in which they are due. `queue` is `APP/logout`, `APP/erasure`, or the id of a reference that is a list.
 */
const DEFINITIONS: Readonly<Record<Table, readonly [columns: string, ...indexes: Index[]]>> = {
  debate_space_jobs: [
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, kind $key NOT NULL, queue $key NOT NULL, reference $key,
     subject $key NOT NULL, state $key NOT NULL, outcome $key, cause $text, hint $text, details $text NOT NULL,
     attempts $int NOT NULL, failures $int NOT NULL, rejections $int NOT NULL, uncertain $key,
     due_at $moment, token $key, since $moment NOT NULL, ended_at $moment, sealed $text NOT NULL`,
    ['due', 'queue, due_at', 'due_at IS NOT NULL'],
    ['ended', 'queue, state, ended_at', 'ended_at IS NOT NULL'],
    ['subject', 'subject'],
    ['receipts', 'queue, id', `kind = 'erasure' AND state = 'done'`],
  ],
  // `overdue_ms` is the greatest age that was reported.
  debate_space_references: [
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, mark $key NOT NULL, name $text NOT NULL, mode $key NOT NULL, requested_by $text,
     is_list $int NOT NULL, reader $key, complete $int NOT NULL, paused $int NOT NULL, canceled $int NOT NULL,
     started $int NOT NULL, requested_at $moment NOT NULL, resumed_at $moment, overdue_ms $moment NOT NULL, finished_at $moment,
     total $int NOT NULL, users_erased $int NOT NULL, users_not_found $int NOT NULL, users_vetoed $int NOT NULL,
     users_canceled $int NOT NULL`,
    ['lists', 'app, is_list, finished_at, requested_at'],
    ['newest', 'app, requested_at, id'],
    ['unfinished', 'app, finished_at, requested_at'],
  ],
  debate_space_sessions: [
    `id $key NOT NULL PRIMARY KEY, app $key NOT NULL, subject $key NOT NULL, expires_at $moment NOT NULL, due_at $moment,
     token $key, ended_at $moment, sealed $text NOT NULL`,
    ['due', 'app, due_at', 'due_at IS NOT NULL'],
    ['ended', 'app, ended_at', 'ended_at IS NOT NULL'],
  ],
  debate_space_rate: [
    'id $key NOT NULL PRIMARY KEY, app $key NOT NULL, slot $int NOT NULL, taken_at $moment NOT NULL',
    ['taken', 'app, taken_at'], // SKIP LOCKED of MySQL locks whatever it has to sort
  ],
  debate_space_facts: ['id $key NOT NULL PRIMARY KEY, value $moment NOT NULL'],
};

/**
 * The statements that create the tables: at boot, or as a migration. They may run any number of times.
 * @param prefix of the names of the tables: a schema with a dot, or the beginning of each name
 */
export function schema(dialect: Database['dialect'], prefix = ''): readonly string[] {
  const { end, ...types } = TYPES[dialect];
  return TABLES.flatMap((name) => {
    const [columns, ...indexes] = DEFINITIONS[name];
    const table = `${prefix}${name}`;
    const called = table.slice(table.lastIndexOf('.') + 1);
    const typed = columns.replace(/\$\w+/g, (type) => types[type as keyof typeof types]);
    // MySQL has no CREATE INDEX IF NOT EXISTS.
    const ofMysql = dialect === 'mysql' ? indexes.filter(([of]) => of !== 'receipts') : [];
    const inside = ofMysql.map(([of, on]) => `, INDEX ${called}_${of} (${on})`);
    const create = `CREATE TABLE IF NOT EXISTS ${table} (${typed.replace(/\s+/g, ' ')}${inside.join('')}) ${end}`;
    if (dialect === 'mysql') return [create];
    const after = indexes.map(([of, on, where]) => {
      const rows = where === undefined ? '' : ` WHERE ${where}`;
      return `CREATE INDEX IF NOT EXISTS ${called}_${of} ON ${table} (${on})${rows}`;
    });
    return [create.trimEnd(), ...after];
  });
}
