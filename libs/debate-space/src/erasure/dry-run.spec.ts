import { describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceUser } from '../service/calls/listed-users.js';
import { dryRun, uidItems, type UidSource } from './uid-source.js';

/** Users that count how many of them were requested. */
class Listed {
  asked = 0;
  readonly #uids: readonly (string | null)[];

  constructor(...uids: readonly (string | null)[]) {
    this.#uids = uids;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DebateSpaceUser> {
    for (const uid of this.#uids) {
      this.asked += 1;
      yield await Promise.resolve({ uid });
    }
  }
}

const nothingRequested = () => Promise.resolve(0);
const run = (source: UidSource, users: Listed, requested: Parameters<typeof dryRun>[2] = nothingRequested) =>
  dryRun(uidItems(source), users, requested);

describe('a dry run', () => {
  it('counts the items, the uids, and the users, and numbers those that need a look', async () => {
    const source = ['ada', 'ben', 'ada', '', 'cleo', 'ada', '..'];
    expect(await run(source, new Listed('x', 'cleo', null, 'ada', 'cleo', 'y'))).toEqual({
      total: 7,
      distinct: 3,
      duplicates: 2,
      invalid: 2,
      invalidItems: [4, 7],
      known: 2,
      notFound: 1,
      notFoundItems: [2],
      alreadyRequested: 0,
    });
  });

  it('numbers the first hundred', async () => {
    const source = Array.from({ length: 300 }, (_, n) => (n % 2 === 0 ? '' : `user-${n}`));
    const { invalid, invalidItems, notFound, notFoundItems } = await run(source, new Listed('user-1'));
    expect([invalid, invalidItems.length, invalidItems.at(-1)]).toEqual([150, 100, 199]);
    expect([notFound, notFoundItems.length, notFoundItems[0], notFoundItems.at(-1)]).toEqual([
      149, 100, 4, 202,
    ]);
  });

  it('asks for no more users when all are found, and for none without a uid', async () => {
    const users = new Listed('x', 'ben', 'ada', 'y', 'z');
    expect(await run(['ada', 'ben'], users)).toMatchObject({ known: 2, notFound: 0 });
    expect(users.asked).toBe(3);
    const unasked = new Listed('ada');
    expect(await run(['', '.'], unasked)).toMatchObject({ total: 2, invalid: 2, known: 0, notFound: 0 });
    expect(unasked.asked).toBe(0);
  });

  it('asks of each uid once whether it is requested already, 250 at a time', async () => {
    const uids = Array.from({ length: 600 }, (_, n) => `user-${n}`);
    const asked: (readonly string[])[] = [];
    const requested = (some: readonly string[]) => {
      asked.push(some);
      return Promise.resolve(some.filter((uid) => uid.endsWith('7')).length);
    };
    const counts = await run([...uids, ...uids], new Listed(), requested);
    expect(counts).toMatchObject({
      total: 1200,
      distinct: 600,
      duplicates: 600,
      notFound: 600,
      alreadyRequested: 60,
    });
    expect(asked.map(({ length }) => length)).toEqual([250, 250, 100]);
    expect(asked.flat()).toEqual(uids);
  });

  it('leaves the app its turns while it reads a list that is there already', async () => {
    let turns = 0;
    const turn = (): void => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await run(
      Array.from({ length: 10_000 }, (_, n) => `user-${n}`),
      new Listed(),
    );
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(39);
  });

  it('asks for no users when the list cannot be read', async () => {
    const users = new Listed('ada');
    const broken = async function* () {
      yield await Promise.resolve('ada');
      throw new Error('the connection broke');
    };
    const requested = jest.fn(nothingRequested);
    await expect(run(broken(), users, requested)).rejects.toThrow('the connection broke');
    expect([users.asked, requested.mock.calls.length]).toEqual([0, 0]);
  });
});
