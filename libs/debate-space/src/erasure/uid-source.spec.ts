import { describe, expect, it, jest } from '@jest/globals';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { InvalidArgumentError } from '../errors.js';
import { errorOf } from '#support/service/service-clients.js';
import type { DebateSpaceUser } from '../service/calls/listed-users.js';
import { dryRun, uidItems, uidsOf, type UidSource } from './uid-source.js';

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

const bytes = (): Readable => Readable.from([Buffer.from('ada\nben')], { objectMode: false });
const web = (readable: Readable): UidSource => Readable.toWeb(readable) as ReadableStream<string>;

describe('a source of uids', () => {
  it.each<[string, () => UidSource]>([
    ['an array', () => ['ada', 'ben', 'Zoë']],
    ['another iterable', () => new Set(['ada', 'ben', 'Zoë'])],
    ['an async iterable', () => Readable.from(['ada', 'ben', 'Zoë']).map((uid: string) => uid)],
    ['a stream of the web', () => web(Readable.from(['ada', 'ben', 'Zoë']))],
    ['a text by lines', () => createInterface({ input: Readable.from(['ada\nben\nZo', 'ë\n']) })],
  ])('may be %s', async (_what, source) => {
    expect(await all(uidItems(source()))).toEqual([
      { item: 1, uid: 'ada' },
      { item: 2, uid: 'ben' },
      { item: 3, uid: 'Zoë' },
    ]);
    expect(await all(uidsOf(source()))).toEqual(['ada', 'ben', 'Zoë']);
  });

  it.each<[string, unknown, string]>([
    ['a text', 'ada', 'hint: parse it first'],
    ['bytes', Buffer.from('ada'), 'hint: parse it first'],
    ['a stream of bytes', bytes(), 'hint: parse it first'],
    ['a stream of text', bytes().setEncoding('utf8'), 'hint: parse it first'],
    ['nothing', undefined, 'must be an array'],
    ['null', null, 'must be an array'],
    ['one object', { uid: 'ada' }, 'must be an array'],
  ])('may not be %s, and is refused before it is read', (_what, source, hint) => {
    for (const read of [uidItems, uidsOf]) {
      const attempt = () => read(source as UidSource);
      expect(attempt).toThrow(InvalidArgumentError);
      expect(attempt).toThrow(hint);
      if (source instanceof Readable) expect(source.readableDidRead).toBe(false);
    }
  });

  const SECRET = 'mallory';
  it.each<[string, unknown, string]>([
    ['an empty uid', ['ada', ''], 'item 2: the uid is empty'],
    ['a uid with control characters', ['ada', `${SECRET}\t`], 'item 2: the uid has control characters'],
    ['a dot segment', [`${SECRET}/..`], 'item 1: the uid has a dot segment'],
    ['half a surrogate pair', ['ada', 'ben', `${SECRET}\ud83d`], 'item 3: the uid has a lone surrogate'],
    ['a number with a fraction', ['ada', 4.2], 'item 2: the uid is a number with a fraction'],
    [
      'JSON of a user',
      ['ada', `{"id":7,"name":"${SECRET}"}`],
      'item 2: the uid is the text of a JSON object',
    ],
    ['an object', [{ uid: SECRET }], 'item 1: the uid must be a string and is of type object'],
    ['a hole', new Array<string>(1), 'item 1: the uid must be a string'],
    [
      'bytes',
      Readable.from([Buffer.from(SECRET)]),
      'item 1 must be a uid, and is bytes. hint: parse it first',
    ],
    ['bytes of the web', web(bytes()), 'item 1 must be a uid, and is bytes. hint: parse it first'],
    [
      'text in pieces',
      web(Readable.from([`uid\n${SECRET}\n`])),
      'item 1: it has a line break, so it is text and no uid. hint: parse it first',
    ],
  ])('may not have %s, which is refused by its number, without a value', async (_what, source, problem) => {
    const error = await errorOf(all(uidsOf(source as UidSource)));
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(error).toMatchObject({ operation: 'requestErasure', outcome: 'not-sent', attempts: 0 });
    expect((error as Error).message).toContain(problem);
    expect(JSON.stringify([error, (error as Error).stack, (error as Error).cause])).not.toContain(SECRET);
    if (source instanceof Readable) expect(source.destroyed).toBe(true);
  });

  it('gives every item with what is wrong with it', async () => {
    expect(await all(uidItems(['ada', '.', 7 as never, 'null', 'ben']))).toEqual([
      { item: 1, uid: 'ada' },
      { item: 2, problem: 'the uid has a dot segment' },
      { item: 3, uid: '7' },
      { item: 4, problem: expect.stringContaining('the text of a missing value') },
      { item: 5, uid: 'ben' },
    ]);
  });

  it('is read no further than it is requested', async () => {
    let given = 0;
    const reading = uidsOf(
      (function* () {
        for (;;) yield `user-${(given += 1)}`;
      })(),
    );
    for (let n = 0; n < 10; n += 1) await reading.next();
    expect(given).toBe(10);
  });

  it('is ended when the loop is left', async () => {
    const source = Readable.from(['ada', 'ben']);
    for await (const uid of uidsOf(source)) if (uid === 'ada') break;
    expect(source.destroyed).toBe(true);
  });
});

describe('a dry run', () => {
  /** Walks these users. @returns the counts, with how many users were read */
  async function run(
    source: UidSource,
    listed: readonly (string | null)[] = [],
    requested = nothingRequested,
  ) {
    let read = 0;
    const users = async function* (): AsyncGenerator<DebateSpaceUser> {
      for (const uid of listed) {
        read += 1;
        yield await Promise.resolve({ uid });
      }
    };
    return { ...(await dryRun(uidItems(source), users(), requested)), read };
  }
  const nothingRequested: Parameters<typeof dryRun>[2] = () => Promise.resolve(0);
  const uidsUpTo = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

  it('counts the items, the uids, and the users, and numbers those that need a look', async () => {
    const source = ['ada', 'ben', 'ada', '', 'cleo', 'ada', '..'];
    expect(await run(source, ['x', 'cleo', null, 'ada', 'cleo', 'y'])).toEqual({
      ...{ total: 7, distinct: 3, duplicates: 2, invalid: 2, invalidItems: [4, 7], alreadyRequested: 0 },
      ...{ known: 2, notFound: 1, notFoundItems: [2], read: 6 },
    });
  });

  it('numbers the first hundred', async () => {
    const source = uidsUpTo(300).map((uid, n) => (n % 2 === 0 ? '' : uid));
    const { invalid, invalidItems, notFound, notFoundItems } = await run(source, ['user-1']);
    expect([invalid, invalidItems.length, invalidItems.at(-1)]).toEqual([150, 100, 199]);
    expect([notFound, notFoundItems.length, notFoundItems[0]]).toEqual([149, 100, 4]);
    expect(notFoundItems.at(-1)).toBe(202);
  });

  it('reads no more users when all are found, and none without a uid', async () => {
    const counts = await run(['ada', 'ben'], ['x', 'ben', 'ada', 'y', 'z']);
    expect(counts).toMatchObject({ known: 2, notFound: 0, read: 3 });
    const none = { total: 2, invalid: 2, known: 0, notFound: 0, read: 0 };
    expect(await run(['', '.'], ['ada'])).toMatchObject(none);
  });

  it('looks once for each uid whether it is requested already, 250 at a time', async () => {
    const uids = uidsUpTo(600);
    const requested = jest.fn((some: readonly string[]) =>
      Promise.resolve(some.filter((uid) => uid.endsWith('7')).length),
    );
    const counts = { total: 1200, distinct: 600, duplicates: 600, notFound: 600, alreadyRequested: 60 };
    expect(await run([...uids, ...uids], [], requested)).toMatchObject(counts);
    const given = requested.mock.calls.map(([some]) => some);
    expect(given.map(({ length }) => length)).toEqual([250, 250, 100]);
    expect(given.flat()).toEqual(uids);
  });

  it('leaves the app its turns while it reads a list that is there already', async () => {
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await run(uidsUpTo(10_000));
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(39);
  });

  it('fails with the error of a list that cannot be read', async () => {
    const broken = new Error('the connection broke');
    const source = async function* () {
      yield await Promise.resolve('ada');
      throw broken;
    };
    const requested = jest.fn(nothingRequested);
    await expect(run(source(), ['ada'], requested)).rejects.toBe(broken);
    expect(requested).not.toHaveBeenCalled();
  });
});
