import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { postgresServer, startPostgres, type RunningPostgres } from 'debate-space-fixtures/postgres.js';
import { redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import { RequestSessions } from 'debate-space-fixtures/request-sessions.js';
import {
  accountOf,
  callers,
  later,
  sessionsIn,
  type Account,
  type Caller,
} from 'debate-space-fixtures/store-account.js';
import { storesInPostgres, storesInRedis } from 'debate-space-fixtures/server-store-kinds.js';
import { storesInMemory, type StoreKind } from 'debate-space-fixtures/store-kinds.js';
import { watching } from 'debate-space-fixtures/watching.js';

/** Whether the users are known when the store is called, and how long the outbox takes to note an end. */
const situations = [
  { name: 'by requests whose users are known', requests: true, slowOutbox: false },
  { name: 'by requests, with an outbox that takes its time', requests: true, slowOutbox: true },
  { name: 'without any request', requests: false, slowOutbox: false },
];
type Situation = (typeof situations)[number];

interface Operation {
  readonly name: string;
  readonly call: (sessions: RequestSessions) => readonly [method: string, ...args: unknown[]];
  /** When the store may have to wait for us: always, if not all is known and noted immediately, or never. */
  readonly waits?: 'always' | 'if needed';
  /** Whose sessions it ends, and why. */
  readonly ends?: readonly string[];
  /** Whether it ends them only in stores that take a list of ids. */
  readonly lists?: boolean;
}

const users = { s1: 'alice', s2: 'bob', s3: undefined };
const sids = ['s1', 's2', 's3', 's4'];

const operations: Operation[] = [
  { name: 'get', call: () => ['get', 's1'] },
  { name: 'get, of no session', call: () => ['get', 's4'] },
  { name: 'touch', call: (sessions) => ['touch', 's1', sessions.of('s1', 'alice')] },
  { name: 'touch, of no session', call: (sessions) => ['touch', 's4', sessions.of('s4', 'alice')] },
  { name: 'all', call: () => ['all'] },
  { name: 'length', call: () => ['length'] },
  { name: 'ids', call: () => ['ids'] },
  { name: 'set', waits: 'if needed', call: (sessions) => ['set', 's1', sessions.of('s1', 'alice')] },
  {
    name: 'set, of a new session',
    waits: 'if needed',
    call: (sessions) => ['set', 's4', sessions.of('s4', 'alice')],
  },
  {
    name: 'set, without the user',
    waits: 'if needed',
    call: (sessions) => ['set', 's1', sessions.of('s1')],
    ends: ['alice: user-removed'],
  },
  {
    name: 'set, with another user',
    waits: 'if needed',
    call: (sessions) => ['set', 's1', sessions.of('s1', 'bob')],
    ends: ['alice: user-replaced'],
  },
  { name: 'destroy', waits: 'if needed', call: () => ['destroy', 's1'], ends: ['alice: destroyed'] },
  { name: 'destroy, of a session without a user', waits: 'always', call: () => ['destroy', 's3'] },
  { name: 'destroy, of no session', waits: 'always', call: () => ['destroy', 's4'] },
  { name: 'clear', waits: 'always', call: () => ['clear'], ends: ['alice: cleared', 'bob: cleared'] },
  {
    name: 'destroy, of several',
    waits: 'if needed',
    call: () => ['destroy', ['s1', 's2']],
    lists: true,
    ends: ['alice: destroyed', 'bob: destroyed'],
  },
  {
    name: 'destroy, of some without a user',
    waits: 'always',
    call: () => ['destroy', sids],
    lists: true,
    ends: ['alice: destroyed', 'bob: destroyed'],
  },
];

interface Run {
  readonly account: Account;
  /** The sessions that the store has afterwards. */
  readonly left: unknown;
  readonly ended: readonly string[];
}

/** Opens a store, has users log in, and makes one call. */
async function run(
  kind: StoreKind,
  { call }: Operation,
  caller: Caller,
  { requests, slowOutbox }: Situation,
  watched: boolean,
): Promise<Run> {
  const { store, fail, close } = await kind.open();
  const sessions = new RequestSessions(requests);
  const loggingIn = { callback: !kind.promises && !kind.silent, looks: true };
  const logIn = async (): Promise<void> => {
    for (const [sid, user] of Object.entries(users)) {
      await accountOf(store, ['set', sid, sessions.of(sid, user)], loggingIn);
    }
    await sessionsIn(store, sids, kind.promises);
  };
  try {
    if (!requests) await logIn();
    const watch = watched ? watching(store, slowOutbox) : undefined;
    if (requests) await logIn();
    await fail?.();
    const account = await accountOf(store, call(sessions), caller);
    const left = await sessionsIn(store, sids, kind.promises);
    return { account, left, ended: (await watch?.ended()) ?? [] };
  } finally {
    await close?.();
  }
}

/** A store that is watched does as its twin that is not, for anyone who calls it – and reports who was logged out. */
function contract(kind: StoreKind): void {
  const methodOf = ({ call }: Operation): string => call(new RequestSessions(false))[0];
  const known = operations.filter((operation) => !kind.lacks?.includes(methodOf(operation)));

  it.each(known)(
    'does the same when watched, and the sessions that it ends are reported: $name',
    async (operation) => {
      const bearable = callers.filter((caller) => !kind.unbearable?.(methodOf(operation), caller));
      const cases = bearable.flatMap((caller) => situations.map((situation) => ({ caller, situation })));
      const runs = cases.map(async ({ caller, situation }) => {
        const { requests, slowOutbox } = situation;
        const atOnce = !operation.waits || (operation.waits === 'if needed' && requests && !slowOutbox);
        const observed = async (watched: boolean): Promise<Run> => {
          const { account, ...others } = await run(kind, operation, caller, situation, watched);
          return { account: atOnce ? account : later(account, caller), ...others };
        };
        const name = `${caller.name}, ${situation.name}`;
        const [plain, watched] = await Promise.all([observed(false), observed(true)]);
        // What cannot be decided counts: rather one logout too many.
        const undecided = kind.undecidable === true && !caller.callback && requests;
        const ends = undecided || (!kind.fails && (kind.lists === true || !operation.lists));
        const ended = ends ? (operation.ends ?? []) : [];
        return { expected: { name, ...plain, ended }, received: { name, ...watched } };
      });
      for (const { expected, received } of await Promise.all(runs)) expect(received).toEqual(expected);
    },
  );
}

describe.each(storesInMemory)('$name', contract);

redisServer.describe('with Redis,', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.stop();
  });
  describe.each(storesInRedis(() => redis.url))('$name', contract);
});

postgresServer.describe('with Postgres,', () => {
  let postgres: RunningPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await postgres.stop();
  });
  describe.each(storesInPostgres(() => postgres.connectionString))('$name', contract);
});
