import { describe, expect, it } from '@jest/globals';
import { serviceClients } from 'debate-space-fixtures/service-clients.js';
import type { DebateSpaceUser, ListedPage, UserPage } from './listed-users.js';
import { iterateUsers } from './paginate-users.js';

const { simulator, client } = serviceClients();
const people = (count: number) => Array.from({ length: count }, (_, at) => ({ uid: `u-${at + 1}` }));

async function uids(users: AsyncIterable<DebateSpaceUser>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const { uid } of users) all.push(uid);
  return all;
}

/** A list that is made up, and which of its pages were requested. */
class MadeUp {
  readonly asked: number[] = [];
  readonly users: AsyncIterable<DebateSpaceUser>;

  constructor(
    page: (page: number) => Partial<UserPage> & { last?: boolean; uids: readonly (string | null)[] },
  ) {
    this.users = iterateUsers((number): Promise<ListedPage> => {
      this.asked.push(number);
      if (this.asked.length > 20) throw new Error('asks for ever');
      const { uids: ids, last = false, ...rest } = page(number);
      return Promise.resolve({ page: { page: number, users: ids.map((uid) => ({ uid })), ...rest }, last });
    });
  }
}

describe('walking all users', () => {
  it.each([
    ['with headers', true, 3],
    ['without headers', false, 4], // the last one is empty
  ])('comes to everybody once, %s', async (_what, pagingHeaders, requests) => {
    const service = await simulator({ users: people(25), pagingHeaders });
    const users = (await client(service)).users({ perPage: 10, sort: 'uid' });
    expect(await uids(users)).toEqual(people(25).map(({ uid }) => uid));
    const lists = service.received.of('list');
    expect(lists).toHaveLength(requests);
    expect(lists[1]?.query).toEqual({ page: '2', per_page: '10', sort: 'uid' });
  });

  it('asks for nothing before the first user is wanted, and for page 2 when page 1 is used up', async () => {
    const service = await simulator({ users: people(4) });
    const users = (await client(service)).users({ perPage: 2 })[Symbol.asyncIterator]();
    expect(service.received.count).toBe(0);
    await users.next();
    await users.next();
    expect(service.received.of('list')).toHaveLength(1);
    await users.next();
    expect(service.received.of('list')).toHaveLength(2);
  });

  it('stops asking when the loop is left', async () => {
    const service = await simulator({ users: people(4) });
    for await (const { uid } of (await client(service)).users({ perPage: 1 })) if (uid === 'u-2') break;
    expect(service.received.of('list')).toHaveLength(2);
  });

  it('comes to no one when there is no one', async () => {
    const service = await simulator({ users: [] });
    expect(await uids((await client(service)).users())).toEqual([]);
  });

  it('throws from the loop, after the users that it has', async () => {
    const service = await simulator({ users: people(2) });
    const users = (await client(service)).users({ perPage: 1 })[Symbol.asyncIterator]();
    await users.next();
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    await expect(users.next()).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_PERMISSION' });
  });

  it('ends when the service repeats a page for ever', async () => {
    const list = new MadeUp(() => ({ uids: ['a', 'b'] }));
    expect(await uids(list.users)).toEqual(['a', 'b']);
    expect(list.asked).toEqual([1, 2]);
  });

  it('ends when the service repeats a page and always promises another', async () => {
    const list = new MadeUp(() => ({ uids: ['a', 'b'], nextPage: 2, totalPages: 9 }));
    expect(await uids(list.users)).toEqual(['a', 'b']);
    expect(list.asked).toEqual([1, 2]);
  });

  it.each<[string, ConstructorParameters<typeof MadeUp>[0], number]>([
    ['pages in turn', (page) => ({ uids: [`u-${page % 3}`] }), 4],
    ['a page in another order', (page) => ({ uids: page % 2 ? ['a', 'b'] : ['b', 'a'] }), 2],
    ['a page, and counts on', (page) => ({ uids: ['a'], nextPage: page + 1, totalPages: page + 1 }), 2],
    [
      'a page of nobody, and counts on',
      (page) => ({ uids: [null], nextPage: page + 1, totalPages: page + 1 }),
      3,
    ],
  ])('ends when the service repeats %s', async (_what, page, asked) => {
    const list = new MadeUp(page);
    await uids(list.users);
    expect(list.asked).toHaveLength(asked);
  });

  it('ends when the service begins again after more users than are remembered', async () => {
    const pageOf = (page: number) => Array.from({ length: 5000 }, (_, at) => `u-${page % 3}-${at}`);
    const list = new MadeUp((page) => ({ uids: pageOf(page) }));
    expect(await uids(list.users)).toHaveLength(15_000);
    expect(list.asked).toEqual([1, 2, 3, 4]);
  });

  it.each([
    ['points backwards', (page: number) => page - 1],
    ['stays where it is', (page: number) => page],
  ])('ends when the next page %s', async (_what, nextPage) => {
    const list = new MadeUp((page) => ({
      uids: [`u-${page}`],
      nextPage: page < 3 ? page + 1 : nextPage(page),
    }));
    expect(await uids(list.users)).toEqual(['u-1', 'u-2', 'u-3']);
    expect(list.asked).toEqual([1, 2, 3]);
  });

  it('ends after as many pages as the service has counted, whatever it says comes next', async () => {
    const list = new MadeUp((page) => ({ uids: [`u-${page}`], totalPages: 2, nextPage: page + 1 }));
    expect(await uids(list.users)).toEqual(['u-1', 'u-2']);
    expect(list.asked).toEqual([1, 2]);
  });

  it('ends when the service ignores the page and changes a field of each record', async () => {
    let views = 0;
    const asked: number[] = [];
    const users = iterateUsers((page) => {
      asked.push(page);
      if (asked.length > 20) throw new Error('asks for ever');
      const listed = ['a', 'b', null].map((uid) => ({ uid, seen_at: (views += 1) }));
      return Promise.resolve({ page: { page, users: listed }, last: false });
    });
    expect(await uids(users)).toEqual(['a', 'b', null]);
    expect(asked).toEqual([1, 2]);
  });

  it('goes on over equal pages of anonymized users, to the user behind them', async () => {
    const list = new MadeUp((page) => ({ uids: page < 10 ? [null, null] : page === 10 ? ['a'] : [] }));
    expect(await uids(list.users)).toContain('a');
    expect(list.asked).toHaveLength(11);
  });

  it('goes on when a user has slid from one page to the next among anonymized ones', async () => {
    const pages: (string | null)[][] = [['a', 'b'], [null, 'b'], [null, null], ['c']];
    const list = new MadeUp((page) => ({ uids: pages[page - 1] ?? [] }));
    expect(await uids(list.users)).toContain('c');
  });

  it('ends after a hundred pages of anonymized users in a row, when the service counts none', async () => {
    let asked = 0;
    const users = iterateUsers((page) => {
      asked += 1;
      if (asked > 200) throw new Error('asks for ever');
      return Promise.resolve({ page: { page, users: [{ uid: null }] }, last: false });
    });
    expect(await uids(users)).toHaveLength(100);
    expect(asked).toBe(101);
  });

  it('follows the service over a gap', async () => {
    const list = new MadeUp((page) => ({ uids: [`u-${page}`], nextPage: page + 2, last: page > 4 }));
    expect(await uids(list.users)).toEqual(['u-1', 'u-3', 'u-5']);
  });

  it('keeps pages that look alike when the service has counted them', async () => {
    // Anonymized users, one on each page.
    const list = new MadeUp((page) => ({
      uids: [null],
      totalPages: 3,
      nextPage: page < 3 ? page + 1 : undefined,
      last: page === 3,
    }));
    expect(await uids(list.users)).toEqual([null, null, null]);
  });
});
