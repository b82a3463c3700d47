import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { execFile, execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { open, type Database, type RootDatabase } from 'lmdb';
import { StorageError, type Storage, type StorageContext } from 'durable-jobs';
import { lmdbStorage } from 'durable-jobs/lmdb';
import { versionOf, NOTE_MS, type StoredClock } from '../../libs/durable-jobs/src/lmdb-space.js';

const DAY = 24 * 60 * 60_000;
const YEAR = 365 * DAY;
const context: StorageContext = {
  namespace: 'app',
  families: ['a', 'b'],
  contained: (work) => {
    work();
  },
};
const nothing = new Map<string, string>();
const numbered = (count: number): Map<string, string> =>
  new Map(Array.from({ length: count }, (_, n) => [`a:${n}`, 'x'.repeat(300)]));

function programOf(name: string, ...more: readonly string[]): [string, string[]] {
  const file = (part: string): string =>
    fileURLToPath(new URL(`../../libs/debate-space-fixtures/src/${part}`, import.meta.url));
  return [process.execPath, ['--import', file('typescript.mjs'), file(name), ...more]];
}

describe('the storage in an LMDB file', () => {
  let root: string;
  let path: string;
  const opened: Storage[] = [];
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'lmdb-storage-'));
  });
  beforeEach(async () => {
    path = await mkdtemp(join(root, 'place-'));
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    jest.useRealTimers();
    await Promise.all(opened.splice(0).map(async (storage) => storage.close()));
  });
  afterAll(async () => {
    await rm(root, { recursive: true });
  });

  async function start(more: Partial<StorageContext> = {}): Promise<Storage> {
    const storage = await lmdbStorage({ path }).open({ ...context, ...more });
    opened.push(storage);
    return storage;
  }

  const inFolder = (name: string): string => join(path, 'app', name);

  /** Looks into the file past the storage. */
  async function inside<T>(
    look: (meta: Database<unknown, string>, file: RootDatabase) => T | Promise<T>,
  ): Promise<T> {
    const file = open(join(path, 'app'), { noSubdir: false, maxDbs: 64, overlappingSync: false });
    try {
      return await look(file.openDB('meta', { encoding: 'json', useVersions: true }), file);
    } finally {
      await file.close();
    }
  }
  const transactions = () => inside((_, file) => (file.getStats() as { lastTxnId: number }).lastTxnId);
  const putClock = (meta: Database<unknown, string>, clock: StoredClock) =>
    meta.put('clock', clock, versionOf(JSON.stringify(clock)));
  const storedClock = () => inside((meta) => meta.get('clock') as StoredClock);

  describe('on the disk', () => {
    it('writes the commits of one turn together', async () => {
      const storage = await start();
      const before = await transactions();
      const commits = [...numbered(500)].map(async (row) => storage.commit(nothing, new Map([row])));
      await Promise.all(commits);
      expect((await transactions()) - before).toBeLessThan(5);
      expect(await storage.count('a')).toBe(500);
    });

    it('is readable by its owner only', async () => {
      await start();
      const modes = ['.', 'data.mdb', 'lock.mdb', 'storage-key'].map(
        async (name) => (await stat(inFolder(name))).mode & 0o777,
      );
      expect(await Promise.all(modes)).toEqual([0o700, 0o600, 0o600, 0o600]);
      expect((await readdir(inFolder('.'))).toSorted()).toEqual(['data.mdb', 'lock.mdb', 'storage-key']);
    });

    it('does not grow forever', async () => {
      const storage = await start();
      const round = async (): Promise<void> => {
        await storage.commit(nothing, numbered(500));
        await storage.commit(nothing, new Map([...numbered(500).keys()].map((key) => [key, undefined])));
      };
      for (let n = 0; n < 5; n += 1) await round();
      const early = (await stat(inFolder('data.mdb'))).size;
      for (let n = 0; n < 30; n += 1) await round();
      expect((await stat(inFolder('data.mdb'))).size).toBeLessThanOrEqual(early + 2_000_000);
    });

    it('changes nothing when a key of a commit is none', async () => {
      const storage = await start();
      for (const key of [`a:${'k'.repeat(1_500)}`, 'nofamily:1', 'a', '']) {
        const changes = new Map([
          ['a:1', '1'],
          [key, '2'],
        ]);
        await expect(async () => storage.commit(nothing, changes)).rejects.toBeInstanceOf(TypeError);
        await expect(async () => storage.commit(new Map([[key, '1']]), nothing)).rejects.toBeInstanceOf(
          TypeError,
        );
      }
      expect(await storage.get(['a:1'])).toEqual([undefined]);
    });
  });

  describe('while the disk is full', () => {
    const canLimit = process.platform === 'linux';
    (canLimit ? it : it.skip)('refuses new records, keeps those that it has, and finishes them', async () => {
      const [node, program] = programOf('storage-full-disk.mjs', path);
      const { stdout } = await promisify(execFile)(node, program);
      const report = JSON.parse(stdout) as Record<string, unknown>;
      const full = {
        name: 'StorageError',
        message: expect.stringMatching(/hint: make room: the disk is full/),
      };
      expect(report).toMatchObject({ refused: full, refusedLarge: full, later: 50, isLargeMade: true });
      expect(report.taken).toBeGreaterThan(100);
      expect([report.kept, report.done]).toEqual([report.taken, report.taken]);
    });
  });

  describe('with several checks', () => {
    it('makes a commit exactly when all of them hold, in every combination', async () => {
      const storage = await start();
      await storage.commit(nothing, new Map(['a:0', 'a:1', 'a:2', 'a:3'].map((key) => [key, 'there'])));
      const kinds = [
        { family: 'a', value: 'there', isHeld: true },
        { family: 'b', value: undefined, isHeld: true },
        { family: 'a', value: 'another', isHeld: false },
        { family: 'a', value: undefined, isHeld: false },
        { family: 'b', value: 'there', isHeld: false },
      ];
      type Check = (typeof kinds)[number];
      const combined = (rest: readonly Check[][]): Check[][] =>
        kinds.flatMap((kind) => rest.map((checks) => [kind, ...checks]));
      const all = combined(combined(combined(combined([[]]))));
      const made = await Promise.all(
        all.map(async (checks, n) => {
          const values = checks.map(({ family, value }, place) => [`${family}:${place}`, value] as const);
          return storage.commit(new Map(values), new Map([[`b:made${n}`, '']]));
        }),
      );
      expect(made).toHaveLength(625);
      expect(made).toEqual(all.map((checks) => checks.every(({ isHeld }) => isHeld)));
      expect(await storage.count('b')).toBe(made.filter(Boolean).length);
    });

    it.each([0, 199, 200, 201, 1_000])(
      'makes no part of a commit of 1,001 when number %d fails',
      async (n) => {
        const storage = await start();
        const checks = new Map<string, string | undefined>(
          [...numbered(1_001).keys()].map((key) => [key, undefined]),
        );
        const changes = numbered(1_001);
        expect(await storage.commit(new Map([...checks, [`a:${n}`, 'x']]), changes)).toBe(false);
        expect(await storage.count('a')).toBe(0);
        expect(await storage.commit(checks, changes)).toBe(true);
        expect(await storage.count('a')).toBe(1_001);
      },
    );
  });

  describe('of several processes', () => {
    it('loses no increment, and has one clock and one key', async () => {
      const [node, program] = programOf('storage-increments.mjs', path, '200');
      const storage = await start({ families: ['a'] });
      const others = await Promise.all([1, 2].map(() => promisify(execFile)(node, program)));
      expect(await storage.get(['a:count'])).toEqual(['400']);
      const now = storage.now();
      for (const { stdout } of others) {
        const other = JSON.parse(stdout) as { now: number; key: string };
        expect(other.key).toBe(storage.key);
        expect(now - other.now).toBeGreaterThanOrEqual(0);
        expect(now - other.now).toBeLessThan(9_000);
      }
    });

    it('shows what another process has committed in the same turn of the event loop', async () => {
      const storage = await start({ families: ['a'] });
      expect(await storage.get(['a:count'])).toEqual([undefined]);
      const [node, program] = programOf('storage-increments.mjs', path, '3');
      const before = storage.count('a');
      const first = storage.get(['a:count']);
      execFileSync(node, program);
      expect([before, first, storage.get(['a:count'])]).toEqual([0, [undefined], ['3']]);
    });
  });

  describe('in a folder', () => {
    it('that was there before and is open to others warns of that', async () => {
      await mkdir(inFolder('.'), { recursive: true });
      await chmod(inFolder('.'), 0o777);
      expect((await start()).warnings).toEqual([
        {
          problem: expect.stringMatching(/app is open to other users of this machine \(mode 0777\)$/),
          hint: expect.stringMatching(/^chmod 700 .*app$/),
        },
      ]);
    });

    it('of its owner warns of nothing', async () => {
      expect((await start()).warnings).toEqual([]);
    });
  });

  describe('says that its data were removed', () => {
    it.each([
      ['is new', false, () => rm(inFolder('.'), { recursive: true })],
      ['is as it was', false, () => undefined],
      ['has an empty file', true, () => truncate(inFolder('data.mdb'), 0)],
      ['has its key only', true, () => rm(inFolder('data.mdb'))],
    ])('when the folder %s: %s', async (_, wasEmptied, change) => {
      await (await start()).close();
      await change();
      expect((await start()).wasEmptied).toBe(wasEmptied);
    });
  });

  describe('has a key of its own', () => {
    it('that stays', async () => {
      const { key } = await start();
      expect(Buffer.from(key ?? '', 'base64')).toHaveLength(32);
      expect((await readFile(inFolder('storage-key'), 'utf8')).trim()).toBe(key);
      await opened[0]?.close();
      expect((await start()).key).toBe(key);
      expect((await start({ namespace: 'other' })).key).not.toBe(key);
    });

    it('that is taken over when the process has died before it had made the file', async () => {
      await (await start()).close();
      const key = await readFile(inFolder('storage-key'), 'utf8');
      await rm(inFolder('data.mdb'));
      expect((await start()).key).toBe(key.trim());
    });

    it.each([
      ['is missing', () => rm(inFolder('storage-key'))],
      ['is cut off', () => writeFile(inFolder('storage-key'), 'abc')],
    ])('without which it does not open: it %s', async (_, damage) => {
      await (await start()).close();
      await damage();
      await expect(start()).rejects.toMatchObject({
        name: 'StorageError',
        message: expect.stringMatching(/storage-key is missing or damaged.*hint: restore it.*openssl rand/),
      });
    });
  });

  describe('has a clock', () => {
    /** What the next opening finds: the file was last used in another boot of the machine, some time ago. */
    async function restartMachine(ago: number): Promise<void> {
      await inside(async (meta) => {
        const clock = meta.get('clock') as StoredClock;
        await putClock(meta, { ...clock, boot: 'another', seen: clock.seen - ago });
      });
    }
    function moveDate(ms: number): void {
      const real = Date.now.bind(Date);
      jest.spyOn(Date, 'now').mockImplementation(() => real() + ms);
    }
    async function reopened(prepare: () => unknown): Promise<number> {
      const before = await start();
      await before.commit(nothing, new Map([['a:1', '1']]));
      await before.close();
      await prepare();
      return (await start()).now() - before.now();
    }

    it.each([4 * YEAR, -4 * YEAR])(
      'that a date moved by %d ms before it is opened does not move',
      async (ms) => {
        const moved = await reopened(() => {
          moveDate(ms);
        });
        expect(Math.abs(moved)).toBeLessThan(5);
      },
    );

    it('that takes the date after a night without power', async () => {
      const moved = await reopened(() => restartMachine(DAY / 2));
      expect(Math.abs(moved)).toBeLessThan(5_000);
    });

    it.each([4 * YEAR, -4 * YEAR])(
      'that does not follow a date moved by %d ms after a restart of the machine',
      async (ms) => {
        const moved = await reopened(async () => {
          await restartMachine(0);
          moveDate(ms);
        });
        expect(moved).toBeGreaterThan(NOTE_MS / 2);
        expect(moved).toBeLessThanOrEqual(NOTE_MS);
      },
    );

    it('that sees a restart of a machine that does not name its boots', async () => {
      const moved = await reopened(() =>
        inside(async (meta) => {
          const clock = meta.get('clock') as StoredClock;
          await putClock(meta, { ...clock, offset: clock.offset - DAY }); // a monotonic clock that has gone back
        }),
      );
      expect(moved).toBeGreaterThanOrEqual(-5);
      expect(moved).toBeLessThanOrEqual(NOTE_MS);
    });

    it('that the file knows up to a minute', async () => {
      const storage = await start();
      const { seen, ...shared } = await storedClock();
      await storage.commit(nothing, new Map([['a:1', '1']]));
      expect(await storedClock()).toEqual({ seen, ...shared });
      const real = process.hrtime.bigint.bind(process.hrtime);
      jest.spyOn(process.hrtime, 'bigint').mockImplementation(() => real() + BigInt(NOTE_MS) * 1_000_000n);
      await storage.commit(new Map([['a:1', 'not']]), new Map([['a:1', '2']]));
      expect((await storedClock()).seen).toBe(seen);
      await storage.commit(nothing, new Map([['a:1', '2']]));
      expect((await storedClock()).seen).toBeGreaterThanOrEqual(seen + NOTE_MS);
      expect(await storedClock()).toMatchObject(shared);
    });
  });

  describe('that cannot be opened', () => {
    const refusal = async (): Promise<unknown> => start().catch((error: unknown) => error);
    const saying = (pattern: RegExp): object => ({
      name: 'StorageError',
      message: expect.stringMatching(pattern),
    });

    it('says so of a path that is no folder', async () => {
      path = join(path, 'file');
      await writeFile(path, '');
      expect(await refusal()).toMatchObject(saying(/another path: that is not a folder/));
    });

    it('says so of a folder that may not be written', async () => {
      await chmod(path, 0o500);
      const isRoot = process.geteuid?.() === 0; // may write everywhere
      if (isRoot) process.seteuid?.('nobody');
      try {
        expect(await refusal()).toMatchObject(saying(/EACCES.*give the folder to the user/));
      } finally {
        if (isRoot) process.seteuid?.(0);
        await chmod(path, 0o700);
      }
    });

    it.each([
      ['a newer version', 4],
      ['an older version', 2],
    ])('says so of %s, and leaves it as it is', async (_, format) => {
      await (await start()).close();
      await inside((meta) => meta.put('format', format, 9));
      const before = await readFile(inFolder('data.mdb'));
      const pattern = new RegExp(`another version.*format ${format}, .*knows 3.*deliver what waits`);
      expect(await refusal()).toMatchObject(saying(pattern));
      expect(before.equals(await readFile(inFolder('data.mdb')))).toBe(true);
    });

    const PAGE = 4096;
    /** How many bytes of the file LMDB has used. */
    const used = () =>
      inside((_, file) => {
        const { lastPageNumber, pageSize } = file.getStats() as Record<'lastPageNumber' | 'pageSize', number>;
        return (lastPageNumber + 1) * pageSize;
      });

    it.each([100, PAGE, 2 * PAGE - 1, 2 * PAGE, 3 * PAGE, 'the last page in use'])(
      'says so of a file that is cut off at %s bytes',
      async (where) => {
        const storage = await start();
        await storage.commit(nothing, numbered(10_000));
        await storage.close();
        const size = typeof where === 'number' ? where : (await used()) - PAGE;
        await truncate(inFolder('data.mdb'), size);
        // In a process of its own, since LMDB would end this one.
        const { stdout } = await promisify(execFile)(...programOf('storage-refusal.mjs', path));
        expect(JSON.parse(stdout)).toMatchObject(
          saying(/data\.mdb is cut off.*hint: restore the folder from a backup, or move it away/),
        );
      },
    );

    it('opens a file of which only reserved space is cut off', async () => {
      const storage = await start();
      await storage.commit(nothing, numbered(1_000));
      await storage.close();
      await truncate(inFolder('data.mdb'), await used());
      expect(await (await start()).count('a')).toBe(1_000);
    });

    it('says so of a file that is none of LMDB', async () => {
      await (await start()).close();
      await writeFile(inFolder('data.mdb'), Buffer.alloc(100_000, 'x'));
      expect(await refusal()).toMatchObject(saying(/MDB_INVALID.*move the folder away/));
    });

    it('says what to install when lmdb is missing', async () => {
      jest.unstable_mockModule('lmdb', () => {
        throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
      });
      await jest.isolateModulesAsync(async () => {
        const fresh = await import('durable-jobs/lmdb');
        const failure = async () => fresh.lmdbStorage({ path }).open(context);
        await expect(failure).rejects.toMatchObject(saying(/npm install lmdb/));
      });
      jest.unstable_unmockModule('lmdb');
    });
  });

  it('shows no key and no value in an error', async () => {
    const storage = await start();
    await storage.close();
    const failure = async () => storage.commit(nothing, new Map([['a:alice', 'secret']]));
    const error: unknown = await failure().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StorageError);
    expect(String(error)).not.toMatch(/alice|secret/);
  });
});
