import { describe, expect, it } from '@jest/globals';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { InvalidArgumentError } from '../errors.js';
import { errorOf } from '#support/service/service-clients.js';
import { uidItems, uidsOf, type UidSource } from './uid-source.js';

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

  it('may be empty', async () => {
    expect(await all(uidsOf([]))).toEqual([]);
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

  it('fails with its own error', async () => {
    const broken = new Error('the connection broke');
    const source = async function* () {
      yield await Promise.resolve('ada');
      throw broken;
    };
    await expect(all(uidsOf(source()))).rejects.toBe(broken);
  });

  it('is ended when the loop is left', async () => {
    const source = Readable.from(['ada', 'ben']);
    for await (const uid of uidsOf(source)) if (uid === 'ada') break;
    expect(source.destroyed).toBe(true);
  });
});
