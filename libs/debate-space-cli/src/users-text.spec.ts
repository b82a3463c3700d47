import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import type { DebateSpaceUser } from 'nestjs-debate-space';
import { usersText, type UsersTextOptions } from './users-export.js';

/** Users, and whether somebody stopped asking for them. */
class Listed {
  isLeft = false;
  readonly #count: number;
  readonly #uid: (n: number) => string;

  constructor(count: number, uid = (n: number) => `u-${n}`) {
    this.#count = count;
    this.#uid = uid;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DebateSpaceUser> {
    try {
      for (let n = 1; n <= this.#count; n += 1)
        yield await Promise.resolve({ uid: this.#uid(n), score: n, name: 'Zoë' });
    } finally {
      this.isLeft = true;
    }
  }
}

async function piecesOf(users: AsyncIterable<DebateSpaceUser>, options: UsersTextOptions): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of usersText(users, options)) pieces.push(piece);
  return pieces;
}

describe('the text of users', () => {
  it('has a line of JSON for each user', async () => {
    const lines = (await piecesOf(new Listed(250), { format: 'ndjson' })).join('').split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
      Array.from({ length: 250 }, (_, n) => ({ uid: `u-${n + 1}`, score: n + 1, name: 'Zoë' })),
    );
  });

  it('has a row of CSV for each user, under one header row', async () => {
    const [header, ...rows] = parse((await piecesOf(new Listed(250), { format: 'csv' })).join(''));
    expect(header?.slice(-3)).toEqual(['score', 'name', 'more']);
    expect(rows.map((row) => [row[0], row.at(-3)])).toEqual(
      Array.from({ length: 250 }, (_, n) => [`u-${n + 1}`, `${n + 1}`]),
    );
  });

  it.each([
    ['ndjson', '{"score":1,"uid":"u-1"}\n{"score":2,"uid":"u-2"}\n'],
    ['csv', 'score,uid,toString\n1,u-1,\n2,u-2,\n'],
  ] as const)('has the requested columns, in %s', async (format, text) => {
    const columns = ['score', 'uid', 'toString'];
    expect((await piecesOf(new Listed(2), { format, columns })).join('')).toBe(text);
  });

  it.each([
    ['ndjson', ''],
    ['csv', 'uid\n'],
  ] as const)('of nobody, in %s, is %j', async (format, text) => {
    expect((await piecesOf(new Listed(0), { format, columns: ['uid'] })).join('')).toBe(text);
  });

  it('comes a hundred users at a time, without a character that is cut', async () => {
    const pieces = await piecesOf(new Listed(250, () => 'ë🦊'.repeat(1000)), {
      format: 'csv',
      columns: ['uid'],
    });
    expect(pieces).toHaveLength(3);
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
  });

  it.each(['ndjson', 'csv'] as const)(
    'in %s asks for no more users when its loop is left',
    async (format) => {
      const users = new Listed(Infinity);
      for await (const piece of usersText(users, { format })) {
        expect(piece).toContain('u-100');
        break;
      }
      expect(users.isLeft).toBe(true);
    },
  );
});
