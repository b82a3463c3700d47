import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Pool as MariadbPool } from 'mysql2/promise';
import type { Pool } from 'pg';
import { freePort } from '#support/servers/free-port.js';
import { Latch } from '#support/latch.js';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '#support/servers/postgres.js';
import { mariadbFunctions, mariadbPool, postgresFunctions } from '#support/storages/table-storages.js';
import { StorageError } from '../errors.js';
import { storageMigration } from './migration.js';
import { mysqlStorage } from './mysql.js';
import { postgresStorage } from './postgres.js';
import { erasureId } from './rules.js';
import type { HostQuery } from './server-calls.js';
import type { OpenStorage, StorageEngine } from './engine.js';
import type { Claim, NewReference, Storage } from './storage.js';

const PASSWORD = 's3cret';

/** Where a pool connects to. Of the administrator, and to the database of the test, unless it says otherwise. */
interface Account {
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly port?: number;
  readonly connections?: number;
}
interface Options {
  readonly migrate?: boolean;
  readonly timeoutMs?: number;
}
interface HostFunctions {
  query: HostQuery;
  transaction<T>(work: (query: HostQuery) => Promise<T>): Promise<T>;
}
interface HostPool {
  /** As an administrator does by hand. @returns the rows */
  run(text: string): Promise<readonly Record<string, unknown>[]>;
  readonly functions: HostFunctions;
  engine(options?: Options): StorageEngine;
  engineOf(functions: HostFunctions, options?: Options): StorageEngine;
  end(): Promise<void>;
}
interface Server {
  pool(account: Account): HostPool;
  crash(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const newLogout = () => ({
  id: `000000000000001-${randomUUID()}`,
  subject: 'subject',
  sealed: 'sealed',
  details: 'destroyed',
});
const reference: NewReference = {
  ...{ reference: 'r', mode: 'delete', requestedBy: undefined, requestedAt: 0 },
  ...{ list: undefined, known: undefined, mark: 'mark' },
};

async function rejection(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StorageError))
    throw new TypeError('it was not rejected with a StorageError', { cause: error });
  expect(error.message).not.toMatch(/s3cret|guest|127\.0\.0\.1|sealed/);
  return error;
}

async function inPostgres(): Promise<Server> {
  const server = await startPostgres();
  return {
    ...server,
    pool: ({ user = 'postgres', password, database = 'postgres', port, connections: max = 4 }) => {
      const url = new URL(server.connectionString);
      const to = { host: url.hostname, port: port ?? Number(url.port), user, password, database, max };
      const pool: Pool = postgresPool(to);
      const functions = postgresFunctions(pool);
      return {
        run: async (text) => (await pool.query<Record<string, unknown>>(text)).rows,
        functions,
        engine: (options) => postgresStorage({ pool, ...options }),
        engineOf: (given, options) => postgresStorage({ ...given, ...options }),
        end: () => pool.end(),
      };
    },
  };
}

async function inMariadb(): Promise<Server> {
  const server = await startMariadb();
  return {
    ...server,
    pool: ({ user = 'root', password, database = 'app', port = server.port, connections = 4 }) => {
      const pool: MariadbPool = mariadbPool(`mysql://127.0.0.1:${port}`, {
        user,
        password,
        database,
        connectionLimit: connections,
      });
      const functions = mariadbFunctions(pool);
      return {
        run: async (text) => (await pool.query(text))[0] as Record<string, unknown>[],
        functions,
        engine: (options) => mysqlStorage({ pool, ...options }),
        engineOf: (given, options) => mysqlStorage({ ...given, ...options }),
        end: () => pool.end(),
      };
    },
  };
}

const servers = [
  {
    name: 'Postgres',
    dialect: 'postgres',
    describe: postgresServer.describe,
    start: inPostgres,
    guest: [
      `CREATE ROLE guest LOGIN PASSWORD '${PASSWORD}'`,
      // Lets everybody in but the guest, of whom it wants the password.
      `DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(ARRAY[%L, %L])) TO %L', 'host all guest 127.0.0.1/32 scram-sha-256',
       'host all all 127.0.0.1/32 trust', current_setting('hba_file')); END $$`,
      'SELECT pg_reload_conf()',
    ],
    grant: (what: string) => `GRANT ${what} ON ALL TABLES IN SCHEMA public TO guest`,
    lock: 'LOCK TABLE debate_space_jobs IN ACCESS EXCLUSIVE MODE',
    readOnly: 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
    errors: {
      'wrong password':
        /^Postgres failed \(28P01: wrong user or password\); hint: correct the user and the password/,
      'no such database': /^Postgres failed \(3D000: no such database\); hint: create it/,
      'no rights': /^Postgres failed \(42501: no right to do this\); hint: grant the user/,
      'no table':
        /^Postgres failed \(42P01: a table is missing\); hint: restart the app .*, or run the SQL of/,
      'no server': /^Postgres failed \(ECONNREFUSED\); hint: check that it runs/,
      silent: /^Postgres failed \(no answer\); hint: check that it runs/,
    },
    deadlock: { code: '40P01' },
  },
  {
    name: 'MariaDB',
    dialect: 'mysql',
    describe: mariadbServer.describe,
    start: inMariadb,
    guest: [`CREATE USER guest@'127.0.0.1' IDENTIFIED BY '${PASSWORD}'`],
    grant: (what: string, database: string) => `GRANT ${what} ON ${database}.* TO guest@'127.0.0.1'`,
    lock: 'LOCK TABLES debate_space_jobs WRITE',
    readOnly: 'SET SESSION tx_read_only = 1',
    errors: {
      'wrong password':
        /^MySQL failed \(1045: wrong user or password\); hint: correct the user and the password/,
      'no such database': /^MySQL failed \(1049: no such database\); hint: create it/,
      'no rights': /^MySQL failed \(1142: no right to do this\); hint: grant the user/,
      'no table': /^MySQL failed \(1146: a table is missing\); hint: restart the app .*, or run the SQL of/,
      'no server': /^MySQL failed \(ECONNREFUSED\); hint: check that it runs/,
      silent: /^MySQL failed \(no answer\); hint: check that it runs/,
    },
    deadlock: { errno: 1213 },
  },
] as const;

for (const kind of servers)
  kind.describe(`a storage in ${kind.name}`, () => {
    const { errors } = kind;
    let server: Server;
    let root: HostPool;
    let admin: HostPool;
    let databases = 0;
    let database: string;
    const closing: (() => Promise<void>)[] = [];

    beforeAll(async () => {
      server = await kind.start();
      root = server.pool({});
      for (const statement of kind.guest) await root.run(statement);
    });
    afterAll(async () => {
      await root.end();
      await server.stop();
    });
    beforeEach(async () => {
      database = `test_${(databases += 1)}`;
      await root.run(`CREATE DATABASE ${database}`);
      admin = pool();
    });
    afterEach(async () => {
      for (const close of closing.splice(0).reverse()) await close();
    });

    function pool(account: Account = {}): HostPool {
      const made = server.pool({ database, ...account });
      closing.push(() => made.end());
      return made;
    }
    async function opened(engine: StorageEngine, application = 'app'): Promise<OpenStorage> {
      const storage = await engine.open(application);
      closing.push(() => storage.storage.close());
      return storage;
    }
    const open = async (engine = admin.engine()): Promise<Storage> => (await opened(engine)).storage;
    const isAway = (storage: Storage): Promise<boolean> =>
      storage.birth().then(
        () => false,
        () => true,
      );
    const guest = (): HostPool => pool({ user: 'guest', password: PASSWORD });
    async function expectToWork(storage: Storage): Promise<void> {
      let claimed: readonly Claim[] = [];
      // A claim that nobody waits for any more may have been on its way, and take the first of them.
      for (let logouts = 0; claimed.length === 0 && logouts < 20; logouts += 1) {
        await storage.addLogouts([newLogout()]);
        claimed = (await storage.claim('logout', 100)).claims;
      }
      expect(claimed).not.toEqual([]);
      expect(await storage.addErasures({ ...reference, reference: randomUUID() }, [])).toMatchObject({
        added: 0,
      });
    }

    describe('at boot', () => {
      const accounts: readonly [keyof typeof errors, () => Promise<Account> | Account][] = [
        ['wrong password', () => ({ user: 'guest', password: 'another' })],
        ['no such database', () => ({ database: 'missing' })],
        ['no server', async () => ({ port: await freePort() })],
      ];
      it.each(accounts)(
        'refuses a connection with %s, and says how to correct it',
        async (problem, account) => {
          const { message } = await rejection(
            pool(await account())
              .engine()
              .open('app'),
          );
          expect(message).toMatch(errors[problem]);
        },
      );

      it('refuses a role that may not create the tables', async () => {
        if (kind.dialect === 'mysql') await root.run(kind.grant('SELECT', database));
        expect((await rejection(guest().engine().open('app'))).message).toMatch(errors['no rights']);
      });

      it('refuses a role that may not write into the tables', async () => {
        await open();
        await admin.run(kind.grant('SELECT, INSERT, UPDATE', database));
        expect((await rejection(guest().engine().open('app'))).message).toMatch(errors['no rights']);
      });

      it('works as a role that may only read and write, when the migration was run', async () => {
        const readsAndWrites = guest();
        const { message } = await rejection(admin.engine({ migrate: false }).open('app'));
        expect(message).toBe(
          `The tables of the storage are missing; hint: run the SQL of \`npx debate-space storage migration --dialect ${kind.dialect}\`, or restart the app without migrate: false`,
        );
        for (const statement of storageMigration(kind.dialect).split(/;\n/).filter(Boolean))
          await admin.run(statement);
        await admin.run(kind.grant('SELECT, INSERT, UPDATE, DELETE', database));
        await expectToWork(await open(readsAndWrites.engine({ migrate: false })));
        await expectToWork(await open(readsAndWrites.engine()));
      });

      it('creates the tables though several processes do so at once', async () => {
        const pools = Array.from({ length: 6 }, () => pool());
        const storages = await Promise.all(pools.map((each) => open(each.engine())));
        for (const storage of storages) await expectToWork(storage);
        expect(new Set(await Promise.all(storages.map((storage) => storage.birth()))).size).toBe(1);
      });

      it('says where it is, without the user', async () => {
        const { place } = await opened(admin.engine());
        expect(place).toContain(database);
        expect(place).not.toMatch(/root|@/);
      });
    });

    describe('while it runs', () => {
      it('says that a table was dropped, and works after a restart of the app', async () => {
        const storage = await open();
        await admin.run('DROP TABLE debate_space_jobs');
        const claims = Array.from({ length: 8 }, () => storage.claim('logout', 1)); // more than connections
        for (const call of [storage.addLogouts([newLogout()]), ...claims])
          expect((await rejection(call)).message).toMatch(errors['no table']);
        await expectToWork(await open());
        await expectToWork(storage);
      });

      it('has another birth mark, or none, after the tables were emptied', async () => {
        const storage = await open();
        const birth = await storage.birth();
        expect(birth).toBeDefined();
        await admin.run('TRUNCATE TABLE debate_space_facts');
        expect(await storage.birth()).not.toBe(birth);
        await open();
        expect(await storage.birth()).not.toBe(birth);
        expect(await storage.birth()).toBeDefined();
      });

      it('leaves half of the pool to the host while the server does not answer, and sends nothing more', async () => {
        const host = pool();
        const storage = await open(host.engine());
        const free = await lockJobs();
        for (let wave = 0; wave < 2; wave += 1) {
          const calls = Array.from({ length: 8 }, () => rejection(storage.claim('logout', 1)));
          for (const error of await Promise.all(calls)) expect(error.message).toMatch(errors.silent);
        }
        await Promise.all([host.run('SELECT 1'), host.run('SELECT 1')]); // two of four connections
        free();
        while (await isAway(storage)) await host.run('SELECT 1');
        await expectToWork(storage);
      });

      it('works again when the server gives up, although the table is still locked', async () => {
        const storage = await open(admin.engine({ timeoutMs: 2_000 }));
        await lockJobs();
        const users = [{ id: erasureId('r', 'ada'), subject: 'ada', formerIds: [], sealed: 'sealed' }];
        const calls = Array.from({ length: 8 }, () => rejection(storage.addErasures(reference, users)));
        await Promise.all(calls);
        while (await isAway(storage)) await admin.run('SELECT 1');
      }, 40_000); // after a minute, the connection is given up, which frees the place as well

      it('closes a connection that became read-only, as those to the former primary of a cluster do', async () => {
        const host = pool({ connections: 1 });
        const storage = await open(host.engine());
        await host.run(kind.readOnly);
        expect((await rejection(storage.addLogouts([newLogout()]))).message).toMatch(/read-only/);
        await expectToWork(storage);
      });

      it('rejects calls while the server is away, and works when it is back', async () => {
        const storage = await open();
        const free = await lockJobs();
        const waiting = [storage.claim('logout', 1), storage.addLogouts([newLogout()])];
        const ends = Promise.all(waiting.map((call) => rejection(call)));
        await server.crash();
        await ends;
        free();
        await rejection(storage.addLogouts([newLogout()]));
        await server.restart();
        await expectToWork(storage);
      });

      it('repeats a transaction that the server undid because of another one', async () => {
        let deadlocks = 0;
        const inDeadlock = Object.assign(new Error('deadlock'), { cause: { cause: kind.deadlock } });
        const functions: HostFunctions = {
          query: admin.functions.query,
          transaction: (work) =>
            admin.functions.transaction(async (query) => {
              const result = await work(query);
              if ((deadlocks += 1) % 2 === 1) throw inDeadlock;
              return result;
            }),
        };
        const storage = await open(admin.engineOf(functions));
        deadlocks = 0;
        expect(await storage.addErasures(reference, [])).toMatchObject({ added: 0 });
        expect(deadlocks).toBe(2);
      });

      it("leaves the errors in a host's transaction as they are", async () => {
        const storage = await open();
        const failed = new Error('of the host');
        const within = storage.within?.({ query: () => Promise.reject(failed) });
        await expect(within?.addErasures(reference, [])).rejects.toBe(failed);
      });

      /** Until the returned function is called, no statement on the jobs is answered. */
      async function lockJobs(): Promise<() => void> {
        const locked = new Latch();
        const unlocked = new Latch();
        const locking = pool().functions.transaction(async (query) => {
          await query(kind.lock, []);
          locked.open();
          await unlocked.passed;
          if (kind.dialect === 'mysql') await query('UNLOCK TABLES', []);
        });
        const ended = locking.catch(() => undefined); // by a crash
        closing.push(async () => {
          unlocked.open();
          await ended;
        });
        await locked.passed;
        return () => {
          unlocked.open();
        };
      }
    });
  });
