import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { OutboxError, type Outbox, type OutboxFactory } from 'nestjs-debate-space';
import { bullmqOutbox } from 'nestjs-debate-space/bullmq';
import type { RecordValues, Records } from '../libs/debate-space/src/erasure/records.js';
import { outboxContext } from './support/outbox-context.js';
import { outboxEngines, type EnginePlaces, type OutboxEngine } from './support/outbox-engines.js';
import { redisServer, startRedis } from './support/redis.js';

const context = outboxContext();
const NOTHING: RecordValues = new Map();
const values = (record: Record<string, string | undefined>): RecordValues => new Map(Object.entries(record));
const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `key-${String(n).padStart(4, '0')}`);

/** What another one has changed may be seen so much later. */
const aTurn = (): Promise<unknown> => sleep(1);

function recordsOf(outbox: Outbox): Records {
  if (!outbox.records) throw new Error(`${outbox.engine} keeps no records`);
  return outbox.records;
}

/** Adds one to a number, however many others do the same. */
async function increment(records: Records, key: string): Promise<void> {
  for (;;) {
    const [before] = await records.get([key]);
    const after = String(Number(before ?? 0) + 1);
    if (await records.change(values({ [key]: before }), values({ [key]: after }))) return;
  }
}

/** Every engine keeps this contract. */
const contract = (engine: OutboxEngine): void => {
  const opened: Outbox[] = [];
  let places: EnginePlaces;
  let place: OutboxFactory;
  let records: Records;
  beforeAll(async () => {
    places = await engine.start();
  });
  beforeEach(async () => {
    place = places.place();
    records = await open();
  });
  afterEach(async () => {
    for (const outbox of opened.splice(0)) await outbox.close();
  });
  afterAll(async () => {
    await places.stop();
  });

  async function open(): Promise<Records> {
    const outbox = await place.open(context);
    opened.push(outbox);
    return recordsOf(outbox);
  }

  async function put(record: Record<string, string>): Promise<void> {
    expect(await records.change(NOTHING, values(record))).toBe(true);
  }

  const all = async (limit = 100): Promise<unknown> => records.range('', '~', limit);

  it('has nothing at first', async () => {
    expect(await records.get([])).toEqual([]);
    expect(await records.get(['a'])).toEqual([undefined]);
    expect(await all()).toEqual([]);
  });

  it('gives back what was put, in the order in which it is asked for', async () => {
    await put({ b: 'two', a: 'one', c: '' });
    expect(await records.get(['c', 'nobody', 'a', 'b', 'a'])).toEqual(['', undefined, 'one', 'two', 'one']);
  });

  it('keeps any text, under any key that is ASCII, as it came', async () => {
    const printable = String.fromCharCode(...Array.from({ length: 94 }, (_, n) => n + 33));
    const all = {
      [printable]: 'Zoë 🦊\n\0"\\',
      ['k'.repeat(1500)]: 'x'.repeat(100_000),
      'b/a%20reference': '{"a":1}',
      '7': '007',
    };
    await put(all);
    expect(await records.get(Object.keys(all))).toEqual(Object.values(all));
    expect(new Map(await records.range(' ', '\x7f', 10))).toEqual(new Map(Object.entries(all)));
  });

  it('gives out a range in the order of the keys, from one – and without – the other, and no more than asked for', async () => {
    await put({ 'b/2': '2', 'a/9': '9', 'b/10': '10', b: 'b', 'b0': 'behind', 'b/': 'first', 'B/1': '1' }); // prettier-ignore
    const keys = async (from: string, to: string, limit = 10): Promise<string[]> =>
      (await records.range(from, to, limit)).map(([key]) => key);
    expect(await keys('', '~')).toEqual(['B/1', 'a/9', 'b', 'b/', 'b/10', 'b/2', 'b0']);
    expect(await keys('b/', 'b0')).toEqual(['b/', 'b/10', 'b/2']);
    expect(await keys('b/10', 'b/2')).toEqual(['b/10']);
    expect(await keys('b/', 'b0', 2)).toEqual(['b/', 'b/10']);
    expect(await keys('c', 'd')).toEqual([]);
    expect(await records.range('b/2', 'b0', 10)).toEqual([['b/2', '2']]);
  });

  it('can be walked, a few at a time', async () => {
    const keys = numbered(25).map((key, n) => (n % 2 ? `${key}/` : key));
    await put(Object.fromEntries(keys.map((key) => [key, key])));
    const walked: string[] = [];
    for (let from = 'key'; ; from = `${walked.at(-1) ?? ''}\0`) {
      const some = await records.range(from, 'kez', 4);
      walked.push(...some.map(([key]) => key));
      if (some.length < 4) break;
    }
    expect(walked).toEqual(keys.toSorted());
  });

  it('forgets what is removed', async () => {
    await put({ a: '1', b: '2' });
    expect(await records.change(NOTHING, values({ a: undefined, nobody: undefined }))).toBe(true);
    expect(await records.get(['a', 'b'])).toEqual([undefined, '2']);
    expect(await all()).toEqual([['b', '2']]);
  });

  it('changes everything when all is as expected', async () => {
    await put({ a: '1', b: '2' });
    const expected = values({ a: '1', b: '2', c: undefined });
    expect(await records.change(expected, values({ a: '10', b: undefined, c: '30' }))).toBe(true);
    expect(await all()).toEqual([
      ['a', '10'],
      ['c', '30'],
    ]);
  });

  it.each<[string, Record<string, string | undefined>]>([
    ['another value', { a: '1', b: 'not 2' }],
    ['something where there is nothing', { a: '1', c: '3' }],
    ['nothing where there is something', { c: undefined, b: undefined }],
  ])('changes nothing when it was to find %s', async (_, expected) => {
    await put({ a: '1', b: '2' });
    const changes = values({ a: '10', b: undefined, c: '30' });
    expect(await records.change(values(expected), changes)).toBe(false);
    expect(await all()).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
  });

  it('says whether all is as expected, when nothing is to be changed', async () => {
    await put({ a: '1' });
    expect(await records.change(values({ a: '1', b: undefined }), NOTHING)).toBe(true);
    expect(await records.change(values({ a: '2' }), NOTHING)).toBe(false);
  });

  it('makes a change of a thousand records at once', async () => {
    const keys = numbered(1000);
    const with_ = (value: string | undefined): RecordValues => new Map(keys.map((key) => [key, value]));
    expect(await records.change(with_(undefined), with_('x'.repeat(300)))).toBe(true);
    expect(await records.range('key', 'kez', 2000)).toHaveLength(1000);
    expect(await records.change(new Map([...with_('x'.repeat(300)), ['key-0999', 'y']]), with_('z'))).toBe(false); // prettier-ignore
    expect(await records.get(['key-0000', 'key-0999'])).toEqual(['x'.repeat(300), 'x'.repeat(300)]);
    expect(await records.change(with_('x'.repeat(300)), with_(undefined))).toBe(true);
    expect(await all()).toEqual([]);
  });

  it('lets one of many be the first', async () => {
    const tries = numbered(20).map(async (name) =>
      records.change(values({ place: undefined }), values({ place: name })),
    );
    const made = (await Promise.all(tries)).flatMap((isMade, n) => (isMade ? numbered(20)[n] : []));
    expect(made).toHaveLength(1);
    expect(await records.get(['place'])).toEqual(made);
  });

  it('loses no change of many at the same time', async () => {
    await Promise.all(numbered(40).map(() => increment(records, 'count')));
    expect(await records.get(['count'])).toEqual(['40']);
  });

  if (engine.name === 'memory') return; // it ends with its process

  it('takes nothing once it is closed', async () => {
    await opened[0]?.close();
    await expect(async () => records.get(['a'])).rejects.toBeInstanceOf(OutboxError);
    await expect(async () => records.range('a', 'b', 1)).rejects.toBeInstanceOf(OutboxError);
    await expect(async () => records.change(NOTHING, values({ a: '1' }))).rejects.toBeInstanceOf(OutboxError);
  });

  it('is there after it was closed and opened again', async () => {
    await put({ a: '1', b: '2' });
    await opened[0]?.close();
    records = await open();
    expect(await all()).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
  });

  it('is the same for everybody who has it open', async () => {
    const other = await open();
    await put({ a: '1' });
    await aTurn();
    expect(await other.get(['a'])).toEqual(['1']);
    expect(await other.range('a', 'b', 10)).toEqual([['a', '1']]);
    expect(await other.change(values({ a: '1' }), values({ a: '2' }))).toBe(true);
    expect(await records.change(values({ a: '1' }), values({ a: '3' }))).toBe(false);
    await aTurn();
    expect(await records.get(['a'])).toEqual(['2']);
  });

  it('loses no change of two that have it open', async () => {
    const other = await open();
    const work = async (mine: Records): Promise<void> => {
      for (let n = 0; n < 50; n += 1) await increment(mine, 'count');
    };
    await Promise.all([work(records), work(other)]);
    await aTurn();
    expect(await records.get(['count'])).toEqual(['100']);
    expect(await other.get(['count'])).toEqual(['100']);
  });

  it('is nobody else’s: another application has its own', async () => {
    const another = await place.open(outboxContext({ namespace: 'another' }));
    opened.push(another);
    await put({ a: '1' });
    expect(await recordsOf(another).get(['a'])).toEqual([undefined]);
    expect(await recordsOf(another).range('', '~', 10)).toEqual([]);
  });
};

for (const engine of outboxEngines) {
  engine.describe(`the records of the ${engine.name} outbox`, () => {
    contract(engine);
  });
}

redisServer.describe('the records of a Redis that goes away', () => {
  it('cannot be had meanwhile, which is said at once, and are there when it is back', async () => {
    const redis = await startRedis({ appendonly: 'yes', appendfsync: 'always' });
    const outbox = await bullmqOutbox({ connection: redis.url }).open(context);
    const records = recordsOf(outbox);
    try {
      await records.change(NOTHING, values({ a: '1' }));
      await redis.crash();
      const calls: readonly (() => Promise<unknown>)[] = [
        async () => records.get(['a']),
        async () => records.range('a', 'b', 1),
        async () => records.change(values({ a: '1' }), values({ a: 'secret' })),
      ];
      for (const call of calls) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(OutboxError);
        expect(String(error)).not.toContain('secret');
      }
      await redis.restart();
      for (;;) {
        const found = await Promise.resolve(records.get(['a'])).catch(() => undefined);
        if (found) {
          expect(found).toEqual(['1']);
          break;
        }
        await sleep(20);
      }
      await increment(records, 'a');
      expect(await records.range('a', 'b', 10)).toEqual([['a', '2']]);
    } finally {
      await outbox.close();
      await redis.stop();
    }
  });
});
