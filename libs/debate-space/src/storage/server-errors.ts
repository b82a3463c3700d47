import { StorageError } from '../errors.js';

const MIGRATE = 'run the SQL of `npx debate-space storage migration`';

/** Refusals of Postgres, MySQL and MariaDB until somebody changes something: codes, meaning, hint. */
const REFUSALS = byCode(`
28P01 1045 | wrong user or password | correct the user and the password of the connection
28000 1130 1698 1251 1524 | the server does not let this user in from here | check the user, pg_hba.conf or the account and its plugin, and whether the server asks for TLS
DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID HANDSHAKE_SSL_ERROR HANDSHAKE_NO_SSL_SUPPORT | TLS failed | see whether the server speaks TLS; give the connection its certificate authority, and the name in its certificate
1820 1862 3118 | the account is locked, or its password has expired | renew the password of the user
1129 | the server has blocked this machine | run FLUSH HOSTS on the server
3D000 1046 1049 | no such database | create it, or correct its name in the connection
3F000 | no such schema | create it, or give another one: postgresStorage({ schema })
42501 1044 1142 1143 1227 | no right to do this | grant the user of the connection USAGE on the schema, and SELECT, INSERT, UPDATE, DELETE on the tables debate_space_…, with no row-level security; if it may not create tables, ${MIGRATE} as another user
42P01 1146 | a table is missing | restart the app without migrate: false, or ${MIGRATE}
42703 1054 | a column is missing | restore it: the SQL of \`npx debate-space storage migration\` has all columns; and check that the option query passes statements on unchanged
25006 1290 1792 1836 | read-only | connect to the primary, and see that neither the server nor the user is set to read-only transactions
53100 1021 1114 | disk full | make room; no restart is needed
1665 | binlog_format is STATEMENT | set binlog_format = ROW (or MIXED) on the server: claims of jobs are READ COMMITTED
1568 | a transaction is open on a connection of the pool | set completion_type = NO_CHAIN, and end each transaction before its connection goes back to the pool
1104 | max_join_size forbids a statement | raise max_join_size, or set sql_big_selects = 1
1193 1231 1238 | the server refuses a setting of the connection | correct charset and the other settings
1175 | sql_safe_updates is on | open the connections of the pool without sql_safe_updates
1048 | a column refuses an empty text | take EMPTY_STRING_IS_NULL out of the sql_mode of the connections
22021 22P05 1366 1115 1273 | the character set has no such character | create the database of Postgres with ENCODING UTF8, or connect to MySQL with charset utf8mb4
1267 1253 | the collations do not go together | leave the columns of debate_space_… as they were created
22003 22001 1264 1406 | a column is too small | somebody has changed its type: the SQL of \`npx debate-space storage migration\` has the right one
22P02 42P18 42804 42883 42P08 | a value arrives as another type | check that the option query hands the values to the driver as they are
42601 1064 1210 | a statement is not understood | check that this is a real Postgres, MySQL or MariaDB, and that the option query passes text and values on unchanged
0A000 42704 1235 | the server lacks a feature | use Postgres, MySQL or MariaDB itself
26000 42P05 1243 1615 1461 1295 | prepared statements do not work here | turn named prepared statements off in the driver, or update the proxy between app and server
1100 | a connection of the pool has locked tables | UNLOCK TABLES before a connection goes back to the pool
`);

/** The server is busy, is starting, or ends: a later call may succeed. */
const BUSY = byCode(`
53300 53400 1040 1203 1226 | too many connections | raise max_connections, or lower the size of the pools
57P01 57P02 57P03 57P05 1053 1047 1927 | the server is starting or stopping | wait for it
57014 55P03 25P03 1969 3024 1317 | the server gave up | another session holds a lock; or raise statement_timeout, lock_timeout or max_statement_time of the user
53200 1037 1038 1041 | out of memory | give the server more memory
40001 40P01 1213 1205 1020 3101 | other transactions hold what this one needs | look for transactions that stay open
`);

const NO_ANSWER = 'check that it runs, and that a connection of the pool is free';
/** Of drivers and pools: nobody answered, or the connection broke. Class 08 of Postgres means connections. */
const CONNECTION =
  /^(E[A-Z]{3,}|EAI_AGAIN|08\w{3}|PROTOCOL_\w+|CONNECTION_\w+|CONNECT_TIMEOUT|POOL_\w+|ER_(GET_)?(CONNECTION|SOCKET)_\w+|45\d{3}|P10(01|02|08|17)|P2024|\w*Connection\w*Error|\w*Timeout\w*Error)$/;
/** Some have no code at all: "Connection terminated unexpectedly", "timeout exceeded when trying to connect". */
const CONNECTION_MESSAGE =
  /^(?!.*been connected).*(connect|terminat|time(d )?out|closed|queue limit|gone away)/i;

/** Of pg, without a code. */
const REFUSAL_MESSAGES: readonly (readonly [message: RegExp, code: string])[] = [
  [/SSL/, 'HANDSHAKE_NO_SSL_SUPPORT'],
  [/SASL|password/, '28P01'],
];

/** The server has undone a statement or a transaction because of another one. */
const CONFLICTS = ['40001', '40P01', '1213', '1205', '1020', '3101'];
const READ_ONLY = ['25006', '1290', '1792', '1836'];

/** Whether the same transaction may succeed at once. */
export const isConflict = (error: unknown): boolean =>
  codesOf(error).some((code) => CONFLICTS.includes(code));

/** Whether the connection must not go back to its pool: it broke, or leads to a server that has become read-only. */
export const isConnectionLost = (error: unknown): boolean => {
  const codes = codesOf(error);
  return codes.some((code) => READ_ONLY.includes(code) || code.startsWith('57P')) || isSilent(error, codes);
};

/** Names a code and nothing more, because messages of drivers repeat what was sent. */
export function serverError(server: string, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const codes = codesOf(error);
  for (const [failures, unreachable] of [
    [REFUSALS, false],
    [BUSY, true],
  ] as const) {
    const code = codes.find((each) => failures.has(each)) ?? '';
    const known = failures.get(code);
    if (known)
      return new StorageError(`${server} failed (${code}: ${known.meaning})`, known.hint, { unreachable });
  }
  const name = codes.at(-1) ?? (error instanceof Error ? error.name : typeof error);
  if (isSilent(error, codes))
    return new StorageError(`${server} failed (${name})`, NO_ANSWER, { unreachable: true });
  const hint =
    codes.length > 0
      ? 'look this code up in the manual of the server or its driver'
      : 'check the options pool, or query and transaction, of the storage';
  return new StorageError(`${server} failed (${name})`, hint);
}

/** Nothing came back in time. */
export const noAnswer = (server: string): StorageError =>
  new StorageError(`${server} failed (no answer)`, NO_ANSWER, { unreachable: true });

function isSilent(error: unknown, codes: readonly string[]): boolean {
  if (codes.length > 0) return codes.some((code) => CONNECTION.test(code));
  const { name, message } = Object(error) as { name?: unknown; message?: unknown };
  return CONNECTION.test(String(name)) || CONNECTION_MESSAGE.test(String(message));
}

function byCode(table: string): ReadonlyMap<string, { readonly meaning: string; readonly hint: string }> {
  const lines = table
    .trim()
    .split('\n')
    .map((line) => line.split(' | '));
  return new Map(
    lines.flatMap(([codes = '', meaning = '', hint = '']) =>
      codes.split(' ').map((code) => [code, { meaning, hint }]),
    ),
  );
}

const INNER = ['cause', 'meta', 'driverAdapterError', 'driverError', 'original', 'parent'];
const MAX_DEPTH = 4;
/** From the outside to the inside: ORMs keep the driver's error in one of these. */
export function codesOf(error: unknown, depth = MAX_DEPTH): string[] {
  if (typeof error !== 'object' || error === null || depth === 0) return [];
  const fields = error as Record<string, unknown>;
  const own = ['originalCode', 'code', 'errno']
    .map((name) => fields[name])
    .filter((each) => typeof each === 'string' || typeof each === 'number')
    .map(String)
    .filter((each) => /^\w{3,40}$/.test(each));
  const inner = INNER.flatMap((name) => codesOf(fields[name], depth - 1));
  if (own.length + inner.length > 0 || depth < MAX_DEPTH) return [...own, ...inner];
  return REFUSAL_MESSAGES.filter(([sign]) => sign.test(String(fields.message))).map(([, code]) => code);
}
