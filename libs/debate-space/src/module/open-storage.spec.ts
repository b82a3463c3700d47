import { afterEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { openMemory, storageContext } from 'debate-space-fixtures/outbox-engines.js';
import { storageKinds } from 'debate-space-fixtures/storage-engines.js';
import { memoryStorage, type Storage, type StorageContext, type StorageEngine } from 'durable-jobs';
import { lmdbStorage } from 'durable-jobs/lmdb';
import { uidCipher } from '../secrets/uid-cipher.js';
import { LogoutQueue } from '../logout/queue/logout-queue.js';
import { openStorage, type OpenStorage } from './own-storage.js';

import { resolveOptions } from './resolve-options.js';

const LONG = 60_000;
const required = {
  apiKey: 'the API key of a test',
  secretKey: 'the secret key of a test',
  applicationName: 'demo',
  authUrl: 'https://debate.example',
};
const storageKey = 'the storage key of a test';
type More = Partial<Record<'apiKey' | 'secretKey' | 'applicationName', string>> & {
  readonly storageKey?: string | readonly string[];
  readonly worker?: boolean;
};

const revealed = ({ keys }: OpenStorage): readonly string[] => keys.map((key) => key.reveal());

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open(storage: StorageEngine, more: More = {}): Promise<OpenStorage> {
  const options = resolveOptions({ ...required, ...more, storage }, {});
  const opened = await openStorage(options, storageContext.contained);
  closing.push(() => opened.storage.close());
  return opened;
}

/** A durable storage that has no key of its own, with what it is told. */
class KeylessStorage implements StorageEngine {
  readonly name = 'keyless';
  readonly guarantee = 'none';
  readonly durable = true;
  readonly opened: StorageContext[] = [];
  closed = 0;

  open(context: StorageContext): Storage {
    this.opened.push(context);
    return Object.assign(openMemory(), { close: () => void (this.closed += 1) });
  }
}

const folder = async (): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), 'open-storage-'));
  closing.push(() => rm(path, { recursive: true }));
  return path;
};

describe('the key for uids at rest', () => {
  for (const kind of storageKinds.filter(({ name }) => ['redis', 'postgres'].includes(name))) {
    kind.describe(`in ${kind.name}`, () => {
      it('must be given, which the error says with a hint', async () => {
        const places = await kind.start();
        closing.push(() => places.stop());
        await expect(open(places.place())).rejects.toMatchObject({
          code: 'ERR_DEBATE_SPACE_OPTIONS',
          message: expect.stringMatching(/storageKey is missing.*openssl rand -base64 32/),
        });
        expect(revealed(await open(places.place(), { storageKey }))).toEqual([storageKey]);
      });
    });
  }

  it('must be given, or the storage is closed again', async () => {
    const storage = new KeylessStorage();
    await expect(open(storage)).rejects.toThrow('storageKey is missing');
    expect([storage.opened.length, storage.closed]).toEqual([1, 1]);
  });

  it.each([[storageKey], [storageKey, 'the storage key before it']])(
    'is the given key, or each of the given keys',
    async (...given) => {
      for (const storage of [memoryStorage(), new KeylessStorage()])
        expect(revealed(await open(storage, { storageKey: given }))).toEqual(given);
    },
  );

  it('of lmdb is the last one, after those that are given', async () => {
    const path = await folder();
    const own = revealed(await open(lmdbStorage({ path })));
    const given = [storageKey, 'the storage key before it'];
    expect(revealed(await open(lmdbStorage({ path }), { storageKey: given }))).toEqual([...given, ...own]);
    expect(revealed(await open(lmdbStorage({ path }), { storageKey: own }))).toEqual(own);
  });

  it('in memory is a new one each time', async () => {
    const keys = [await open(memoryStorage()), await open(memoryStorage())].flatMap(revealed);
    expect(new Set(keys).size).toBe(2);
    expect(Math.min(...keys.map(({ length }) => length))).toBeGreaterThan(30);
  });

  it('of lmdb is its own, which outlives a restart and the rotation of the other keys', async () => {
    const path = await folder();
    const before = await open(lmdbStorage({ path }));
    await before.storage.close();
    const rotated = { apiKey: 'another API key', secretKey: 'another secret key' };
    const after = await open(lmdbStorage({ path }), rotated);
    expect(revealed(after)).toEqual(revealed(before));
    expect(revealed(after)).toHaveLength(1);
    for (const key of Object.values({ ...required, ...rotated })) expect(revealed(after)).not.toContain(key);
  });
});

describe('a logout that was stored under another key', () => {
  async function queue(engine: StorageEngine, more: More): Promise<LogoutQueue> {
    const { storage, keys } = await open(engine, more);
    const outbox = new LogoutQueue(storage, engine, outboxContext({ uids: uidCipher(keys, 'app') }));
    closing.push(() => outbox.close());
    return outbox;
  }

  async function add(outbox: LogoutQueue): Promise<void> {
    await outbox.add([{ id: 'a', uid: 'alice', reason: 'destroyed', endedAt: 1 }]);
    await outbox.close();
  }

  for (const kind of storageKinds.filter(({ name }) => name === 'redis')) {
    kind.describe('in Redis', () => {
      it('is parked with a hint, and delivered when the key is back', async () => {
        const places = await kind.start();
        closing.push(() => places.stop());
        const place = places.place();
        const former = 'the storage key before it';
        await add(await queue(place, { storageKey: former }));

        const other = await queue(place, { storageKey });
        expect(await other.claim(10, LONG)).toEqual([]);
        expect(await other.parked(10)).toMatchObject([
          { entry: { id: 'a', uid: '' }, hint: expect.stringContaining('another storageKey') },
        ]);
        await other.close();

        const again = await queue(place, { storageKey: [storageKey, former] });
        expect(await again.retryParked('a')).toBe(true);
        expect(await again.claim(10, LONG)).toMatchObject([{ entry: { uid: 'alice' } }]);
      });
    });
  }

  it('is delivered and found where that was the key of lmdb', async () => {
    const engine = lmdbStorage({ path: await folder() });
    await add(await queue(engine, {}));
    const own = await queue(engine, { storageKey });
    expect((await own.ofUser('alice')).waiting).toHaveLength(1);
    expect(await own.claim(10, LONG)).toMatchObject([{ entry: { uid: 'alice' } }]);
  });
});

describe('the namespace of an application', () => {
  async function namespaceOf(applicationName: string): Promise<string | undefined> {
    const storage = new KeylessStorage();
    await open(storage, { applicationName, storageKey });
    return storage.opened[0]?.namespace;
  }

  it.each(['demo', 'Demo_2-b', '7', 'x'.repeat(64)])('is its name: %s', async (name) => {
    expect(await namespaceOf(name)).toBe(name);
  });

  // As it is here it must stay: under another one an application would not find what waits.
  it.each([
    ['Bürger / 1', 'B_rger___1-'],
    ['demo.1', 'demo_1-'],
    ['市民', '__-'],
    ['🦊', '__-'],
    ['..x', '__x-'],
    ['{app}:*', '_app___-'],
    ['x'.repeat(65), `${'x'.repeat(32)}-`],
  ])('has a hash when the name has other characters or is long: %s', async (name, beginning) => {
    const namespace = (await namespaceOf(name)) ?? '';
    expect(namespace).toMatch(/^[\w-]+$/);
    expect(namespace.slice(0, -16)).toBe(beginning);
    expect(await namespaceOf(name)).toBe(namespace);
  });

  it('keeps apart what looks alike', async () => {
    const names = ['a.b', 'a b', 'a/b', 'a_b', `${'x'.repeat(65)}1`, `${'x'.repeat(65)}2`, '市', '民'];
    const namespaces = await Promise.all(names.map(namespaceOf));
    expect(new Set(namespaces).size).toBe(names.length);
  });

  it('does not depend on a key', async () => {
    const storage = new KeylessStorage();
    for (const key of ['a', 'b'])
      await open(storage, { apiKey: key, secretKey: `secret ${key}`, storageKey: storageKey + key });
    expect(storage.opened.map(({ namespace }) => namespace)).toEqual(['demo', 'demo']);
  });
});

describe('a storage that cannot be opened', () => {
  const own = { code: 'ERR_DEBATE_SPACE_STORAGE', hint: expect.any(String) };

  it('rejects with the error of this package', async () => {
    const path = join(await folder(), 'a file');
    await writeFile(path, '');
    await expect(open(lmdbStorage({ path }))).rejects.toMatchObject(own);
  });

  it('rejects so because of what a newer version has written', async () => {
    const newer = Object.assign(openMemory(), { range: () => [['format:', '{"v":2,"id":"x"}']] });
    const engine = { ...memoryStorage(), open: () => newer as Storage };
    await expect(open(engine)).rejects.toMatchObject({
      ...own,
      problem: expect.stringContaining('was written by a newer version'),
    });
  });
});

describe('a process that does not deliver', () => {
  it('needs a storage that outlives it', async () => {
    await expect(open(memoryStorage(), { worker: false })).rejects.toMatchObject({
      code: 'ERR_DEBATE_SPACE_OPTIONS',
      message: expect.stringMatching(/worker is false.*give a storage that a delivering process shares/),
    });
    await expect(open(new KeylessStorage(), { worker: false, storageKey })).resolves.toBeDefined();
  });
});
