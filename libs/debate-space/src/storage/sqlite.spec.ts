import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { StorageError } from '../errors.js';
import { openDriver } from './sqlite-file.js';
import { sqliteStorage } from './sqlite.js';
import type { OpenStorage } from './engine.js';
import type { NewLogout } from './storage.js';

let added = 0;
const newLogout = (subject = 'ada'): NewLogout => ({
  id: `${String((added += 1)).padStart(15, '0')}-1`,
  subject,
  sealed: 'sealed',
  details: 'logout',
});

describe('the storage in a file of SQLite', () => {
  let root: string;
  let path: string;
  const opened: OpenStorage[] = [];
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'sqlite-'));
  });
  beforeEach(() => {
    path = join(mkdtempSync(join(root, 'place-')), 'folder', 'debate-space.db');
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(({ storage }) => storage.close()));
  });
  afterAll(() => {
    rmSync(root, { recursive: true });
  });

  async function open(application = 'app'): Promise<OpenStorage> {
    const storage = await sqliteStorage({ path }).open(application);
    opened.push(storage);
    return storage;
  }
  /** Runs statements past the storage. */
  async function inside(text: string): Promise<void> {
    const driver = await openDriver(path);
    driver.exec(text);
    driver.close();
  }
  const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);
  const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => 'no error',
      (error: unknown) => error,
    );

  it('makes a folder, a file and a key that only its user can read', async () => {
    const { place, key, warnings } = await open();
    expect([place, warnings]).toEqual([path, []]);
    expect(Buffer.from(key ?? '', 'base64')).toHaveLength(32);
    const files = [join(path, '..'), path, `${path}-wal`, `${path}-shm`, `${path}.key`];
    expect(files.map(modeOf)).toEqual(['700', '600', '600', '600', '600']);
  });

  it('has one key for all applications and for ever', async () => {
    const [one, other] = [await open(), await open('other')];
    await Promise.all(opened.splice(0).map(({ storage }) => storage.close()));
    expect([other.key, (await open()).key]).toEqual([one.key, one.key]);
  });

  it.each([
    [
      'is missing',
      () => {
        rmSync(`${path}.key`);
      },
    ],
    [
      'is damaged',
      () => {
        truncateSync(`${path}.key`, 20);
      },
    ],
  ])('refuses a file whose key %s, because nobody could read what is in it', async (_how, spoil) => {
    await (await open()).storage.close();
    spoil();
    const message = `${path}.key is missing or damaged, and what was encrypted with it cannot be read; hint: restore it`;
    await expect(open()).rejects.toThrow(message);
  });

  it('warns once of a file and a key that other users can read or change', async () => {
    await (await open()).storage.close();
    for (const file of [path, `${path}.key`]) chmodSync(file, 0o666);
    const others = 'Other users of this machine can';
    expect((await open()).warnings).toEqual([
      { problem: `${others} read the storage key in ${path}.key (mode 0666)`, hint: `chmod 600 ${path}.key` },
      { problem: `${others} read or change ${path} (mode 0666)`, hint: `chmod 600 ${path}*` },
    ]);
    expect((await open('other')).warnings).toEqual([]);
  });

  (process.getuid?.() === 0 ? it : it.skip)(
    'refuses a key, and warns of a file, of another user',
    async () => {
      await (await open()).storage.close();
      chownSync(path, 12345, 0);
      const problem = `${path} belongs to another user of this machine (uid 12345)`;
      expect((await open()).warnings).toEqual([expect.objectContaining({ problem })]);
      chownSync(`${path}.key`, 12345, 0);
      await expect(open('other')).rejects.toThrow(
        `The storage key in ${path}.key belongs to another user of this machine (uid 12345); hint: run the app as that user`,
      );
    },
  );

  it('refuses a file of another program, and leaves it as it is', async () => {
    path = join(root, 'note');
    writeFileSync(
      path,
      'a note of somebody else, and longer than the header of a file of SQLite: '.repeat(9),
    );
    writeFileSync(`${path}.key`, `${Buffer.alloc(32).toString('base64')}\n`);
    const { size } = statSync(path);
    await expect(open()).rejects.toThrow(
      `sqliteStorage() cannot use ${path} (not a file of SQLite); hint: give another path, or move the file away`,
    );
    expect(statSync(path).size).toBe(size);
  });

  it.each([
    [undefined, 'is missing or empty'],
    ['', 'is missing or empty'],
    [':memory:', 'is not a file; hint: for a storage in memory, leave out the option storage'],
    ['file:debate-space.db', 'is a URL; hint: give the path of a file'],
    ['data/', 'is a folder'],
    [
      String.raw`\\server\share\debate-space.db`,
      'is on a network; hint: give a file on a disk of this machine',
    ],
  ])('refuses the path %j', async (unusable, problem) => {
    await expect(sqliteStorage({ path: unusable as never }).open('app')).rejects.toThrow(
      `The option path of sqliteStorage ${problem}`,
    );
  });

  it('refuses a path where no file can be', async () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    for (const [impossible, why] of [
      [join(file, 'in', 'debate-space.db'), 'no such folder, or no file'],
      [root, 'not a file'],
    ] as const) {
      path = impossible;
      await expect(open()).rejects.toThrow(
        `sqliteStorage() cannot use ${impossible} (${why}); hint: give the path of a file`,
      );
    }
  });

  it('knows a file by each of its paths, and is open until the last module has closed it', async () => {
    const one = await open();
    const link = join(root, 'link.db');
    symlinkSync(path, link);
    path = link;
    const other = await open('other');
    await one.storage.close();
    await other.storage.addLogouts([newLogout()]);
    expect(other.place).toBe(one.place);
    await expect(one.storage.birth()).rejects.toThrow('The storage is closed');
  });

  it('does not answer for what it writes when its file was removed or replaced', async () => {
    const { storage } = await open();
    renameSync(`${path}-wal`, `${path}-moved`);
    const lost = `${path} or its -wal file was removed or replaced while it was open; hint: restart the app`;
    await expect(storage.addLogouts([newLogout()])).rejects.toThrow(lost);
    renameSync(`${path}-moved`, `${path}-wal`);
  });

  it('leaves no part of the sealed texts of finished jobs in its file and its WAL', async () => {
    const { storage } = await open();
    const texts = Array.from({ length: 500 }, (_, n) => `sealed-${'x'.repeat(100)}-${n}-`);
    const found = (parts: readonly string[]): readonly string[] => {
      const bytes = [path, `${path}-wal`].map((file) => readFileSync(file, 'latin1')).join('');
      return parts.filter((part) => bytes.includes(part));
    };
    await storage.addLogouts(texts.map((sealed) => ({ ...newLogout(), sealed })));
    const { claims } = await storage.claim('logout', 500);
    expect(found(texts)).toEqual(texts);
    await Promise.all(claims.map((claim) => storage.finishLogout(claim, 1)));
    await storage.prune({ historyMs: 60_000, receiptsMs: 60_000 });
    await storage.birth(); // is answered when the WAL is empty
    expect(found(['sealed-'])).toEqual([]);
  });

  it('opens although another program has the file locked, says so, and writes when it has not', async () => {
    const { storage } = await open();
    const program = await openDriver(path);
    program.exec('BEGIN IMMEDIATE');
    const [locked, other] = await Promise.all([failureOf(storage.addLogouts([newLogout()])), open('other')]);
    expect(locked).toMatchObject({
      message: expect.stringContaining(
        'SQLite failed (locked); hint: another program has a transaction open',
      ),
      unreachable: true,
    });
    const kept = [storage, other.storage].map((each) => each.addLogouts([newLogout()]));
    program.exec('ROLLBACK');
    program.close();
    await Promise.all(kept);
    for (const each of [storage, other.storage])
      expect(await each.counts('logout')).toMatchObject({ waiting: 1 });
  });

  it('says what to do when somebody has dropped its tables, and works again after it', async () => {
    const { storage } = await open();
    await inside('DROP TABLE debate_space_jobs');
    await expect(storage.addLogouts([newLogout()])).rejects.toThrow(
      'SQLite failed (a table is missing); hint: restart the app, which creates the tables',
    );
    await open();
    await storage.addLogouts([newLogout()]);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
  });

  it('undoes a call that fails as a whole, and no other call of the same commit', async () => {
    const { storage } = await open();
    const session = { id: 'session', subject: 'ada', sealed: 'sealed' };
    const impossible = { ...newLogout(), sealed: undefined as unknown as string };
    const failed = failureOf(storage.endSession(session, impossible));
    await Promise.all([storage.addLogouts([newLogout()]), failed, storage.addLogouts([newLogout()])]);
    expect(await failed).toBeInstanceOf(StorageError);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 2, parked: 0 });
    expect(await storage.endSession(session, newLogout())).toBe(true);
  });

  it('answers what was called before it was closed', async () => {
    const { storage } = await open();
    const calls = Array.from({ length: 500 }, () => storage.addLogouts([newLogout()]));
    await storage.close();
    await Promise.all(calls);
    expect(await (await open()).storage.counts('logout')).toMatchObject({ waiting: 500, parked: 0 });
  });

  describe('in processes', () => {
    const fixture = (name: string): string =>
      fileURLToPath(new URL(`../../../../test/support/${name}`, import.meta.url));
    const program = [
      '--disable-warning=DEP0205',
      '--import',
      fixture('process/typescript.mjs'),
      fixture('storages/sqlite-process.ts'),
    ];
    /** Runs sqlite-process.ts until it ends. */
    async function run(
      how: string,
      ...before: string[]
    ): Promise<{ stdout?: string; stderr?: string; code?: unknown; signal?: unknown }> {
      const [command, ...args] = [...before, process.execPath, ...program, path, how];
      return promisify(execFile)(command, args).catch((error: unknown) => Object(error) as object);
    }

    it('gives several that start at the same time one key, and each ends without closing it', async () => {
      const ends = await Promise.all(['add', 'add', 'add', 'open'].map((how) => run(how)));
      const { key = '', storage } = await open();
      expect(ends).toEqual(ends.map(() => ({ stdout: `${key}\n`, stderr: '' })));
      expect(await storage.counts('logout')).toMatchObject({ waiting: 3, parked: 0 });
    });

    it('keeps what it has stored when the process is killed', async () => {
      expect(await run('die')).toMatchObject({ signal: 'SIGKILL' });
      expect(await (await open()).storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
    });

    it('keeps what it has stored next to another module and a process that closes the file', async () => {
      expect(await run('share')).toMatchObject({ signal: 'SIGKILL', stderr: '' });
      expect(await (await open()).storage.counts('logout')).toMatchObject({ waiting: 4, parked: 0 });
    });

    it.each([
      ['exit', 3],
      ['exit-open', 3],
      ['exit-close', 3],
      ['throw', 1],
    ])('ends at once with the process under full load: %s', async (how, code) => {
      const ends = await Promise.all([run(how), run(how)]);
      expect(ends.map(({ code: ended, signal }) => [ended, signal])).toEqual(ends.map(() => [code, null]));
    });

    const canLimit = (): boolean => {
      try {
        return execFileSync('prlimit', ['--version']).length > 0;
      } catch {
        return false;
      }
    };
    (canLimit() ? it : it.skip)('says that the disk has no room, and works again when it has', async () => {
      const { stdout = '', stderr } = await run('fill', 'prlimit', '--fsize=2000000:unlimited');
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^\d+ SQLite failed \(the disk fails, or has no room\); hint: check the disk/);
      const waiting = parseInt(stdout, 10);
      expect(await (await open()).storage.counts('logout')).toMatchObject({ waiting, parked: 0 });
    });
  });
});
