import { describe, expect, it } from '@jest/globals';
import {
  errorOf,
  serviceClients,
  type ScriptedAnswer,
  type ScriptedRequest,
} from '#support/service/service-clients.js';
import type { DebateSpaceUser, ListedPage, UserPage } from './listed-users.js';
import { iterateUsers } from './user-walks.js';

const { simulator, scripted, client } = serviceClients();
const people = (count: number) => Array.from({ length: count }, (_, at) => ({ uid: `u-${at + 1}` }));

async function uids(users: AsyncIterable<DebateSpaceUser>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const { uid } of users) {
    if (all.push(uid) > 10_000) throw new Error('the walk has no end');
  }
  return all;
}

interface MadeUpPage extends Partial<UserPage> {
  readonly uids: readonly (string | null)[];
  readonly last?: boolean;
}

/** A list that is made up, and which of its pages were requested. */
class MadeUp {
  readonly asked: number[] = [];
  readonly users: AsyncIterable<DebateSpaceUser>;

  constructor(page: (page: number) => MadeUpPage) {
    this.users = iterateUsers((number): Promise<ListedPage> => {
      this.asked.push(number);
      if (this.asked.length > 200) throw new Error('asks for ever');
      const { uids: ids, last = false, ...rest } = page(number);
      const listed = { page: number, users: ids.map((uid) => ({ uid })), ...rest };
      const follows = rest.nextPage !== undefined || (last ? false : undefined);
      return Promise.resolve({ page: listed, follows });
    });
  }
}

/** What a service says with paging headers. */
interface Paged {
  readonly size: number;
  readonly uids: readonly string[];
  readonly total?: boolean;
}
function paged(page: number, { uids, size, total = true }: Paged): ScriptedAnswer {
  const pages = Math.max(1, Math.ceil(uids.length / size));
  const headers = { 'total-pages': String(pages), 'next-page': page < pages ? String(page + 1) : '' };
  const body = uids.slice((page - 1) * size, page * size).map((uid) => ({ uid }));
  return { headers: total ? { ...headers, total: String(uids.length) } : headers, body };
}
const pageOf = ({ url }: ScriptedRequest): number =>
  Number(new URL(url, 'http://x').searchParams.get('page'));
const incomplete = {
  code: 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE',
  operation: 'listUsers',
  retryable: true,
  message: expect.stringMatching(/^listUsers: the user list cannot be read to its end: .* hint: /),
};

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

  describe('through a service without paging headers', () => {
    it.each<[string, ScriptedAnswer]>([
      ['404', { status: 404, body: { error: 'no such page' } }],
      ['404 without a body', { status: 404 }],
      ['400', { status: 400, body: { error: 'no such page' } }],
      ['204', { status: 204 }],
      ['data: null', { body: { success: true, data: null } }],
      ['null', { body: 'null' }],
      ['an empty page', { body: [] }],
    ])('ends behind the last page with %s', async (_what, end) => {
      const service = await scripted((request) =>
        pageOf(request) === 3 ? end : { body: people(pageOf(request)) },
      );
      expect(await uids((await client(service)).users())).toEqual(['u-1', 'u-2']);
      expect(service.requests).toHaveLength(3);
    });

    it.each<[string, ScriptedAnswer, string]>([
      ['a web page with 404', { status: 404, body: '<!doctype html>' }, 'UNEXPECTED_RESPONSE'],
      ['a web page with 400', { status: 400, body: '<!doctype html>' }, 'UNEXPECTED_RESPONSE'],
      ['nothing', { body: '' }, 'UNEXPECTED_RESPONSE'],
      ['success: false', { body: { success: false, data: null } }, 'REFUSED'],
      ['401', { status: 401 }, 'AUTHENTICATION'],
      ['403', { status: 403 }, 'PERMISSION'],
      ['422', { status: 422 }, 'REFUSED'],
      ['503', { status: 503 }, 'UNAVAILABLE'],
    ])('rejects when page 2 is answered with %s', async (_what, answer, code) => {
      const service = await scripted((request) => (pageOf(request) === 2 ? answer : { body: people(2) }));
      const debate = await client(service, { http: { maxAttempts: 1 } });
      expect(await errorOf(uids(debate.users()))).toMatchObject({ code: `ERR_DEBATE_SPACE_${code}` });
    });

    it.each<[string, ScriptedAnswer, string]>([
      ['404', { status: 404 }, 'there is no user list at {base_url}/users (404); hint: check baseUrl'],
      ['400', { status: 400 }, 'the service refused the request (400)'],
      ['204', { status: 204 }, 'is empty'],
      ['data: null', { body: { data: null } }, 'is not a list of users'],
    ])('rejects when the first page is answered with %s', async (_what, answer, problem) => {
      const service = await scripted(() => answer);
      const debate = await client(service, { http: { maxAttempts: 1 } });
      await expect(uids(debate.users())).rejects.toThrow(problem);
    });

    it('ends when each page is the first one: the service does not know `page`', async () => {
      const service = await scripted(() => ({ body: people(2) }));
      expect(await uids((await client(service)).users())).toEqual(['u-1', 'u-2']);
      expect(service.requests).toHaveLength(3);
    });

    it('rejects when each page is the first one, and the service has counted more', async () => {
      const service = await scripted(() => ({ headers: { total: '115' }, body: people(20) }));
      expect(await errorOf(uids((await client(service)).users()))).toMatchObject(incomplete);
    });

    it('rejects when a page is missing that the service has counted', async () => {
      const service = await scripted((request) =>
        pageOf(request) === 1 ? { headers: { total: '115' }, body: people(20) } : { status: 400 },
      );
      expect(await errorOf(uids((await client(service)).users()))).toMatchObject({ status: 400 });
    });

    it('rejects when a page is missing that the service has counted earlier', async () => {
      const pages = [paged(1, { uids: ['a', 'b', 'c'], size: 1, total: false }), { body: [{ uid: 'b' }] }];
      const service = await scripted((request) => pages[pageOf(request) - 1] ?? { status: 400 });
      expect(await errorOf(uids((await client(service)).users()))).toMatchObject({ status: 400 });
    });

    it('ends behind a page that has moved to where the next one was', async () => {
      const service = await scripted((request) =>
        pageOf(request) < 3 ? { body: people(2) } : { status: 404 },
      );
      expect(await uids((await client(service)).users())).toEqual(['u-1', 'u-2']);
    });

    it('comes to everybody when as many users as a page has register in between', async () => {
      let listed = people(6);
      const service = await scripted((request) => {
        const page = pageOf(request);
        if (page === 2) listed = [{ uid: 'new-1' }, { uid: 'new-2' }, ...listed];
        return { body: listed.slice((page - 1) * 2, page * 2) };
      });
      expect(await uids((await client(service)).users())).toEqual(people(6).map(({ uid }) => uid));
    });
  });

  describe('through a service that says where it is', () => {
    const everybody = people(115).map(({ uid }) => uid);

    it('comes to everybody when 20 users register between two pages of 20', async () => {
      let listed = everybody;
      const service = await scripted((request) => {
        if (request.index === 1) listed = [...Array.from({ length: 20 }, (_, n) => `new-${n}`), ...listed];
        return paged(pageOf(request), { uids: listed, size: 20 });
      });
      expect(await uids((await client(service)).users())).toEqual(everybody);
      expect(service.requests.map(pageOf)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    });

    it.each([
      ['users, 1 at a time', 1, true],
      ['users, 25 at a time', 25, true],
      ['pages, 20 users at a time', 20, false],
    ])(
      'comes to everybody who stays when users go between all pages, and it counts its %s',
      async (_w, gone, total) => {
        let listed = everybody;
        const service = await scripted((request) => {
          if (request.index > 0 && listed.length > 60) listed = listed.slice(gone);
          return paged(pageOf(request), { uids: listed, size: 20, total });
        });
        const found = await uids((await client(service)).users());
        expect(listed.filter((uid) => !found.includes(uid))).toEqual([]);
        expect(found).toHaveLength(new Set(found).size);
      },
    );

    it('rejects when too many users go', async () => {
      let listed = people(400).map(({ uid }) => uid);
      const service = await scripted((request) => {
        if (request.index === 12) listed = listed.slice(300);
        return paged(pageOf(request), { uids: listed, size: 20 });
      });
      expect(await errorOf(uids((await client(service)).users()))).toMatchObject(incomplete);
    });

    it.each<[string, (page: number) => MadeUpPage]>([
      ['repeats its first page', () => ({ page: 1, uids: ['a', 'b'], nextPage: 2, totalPages: 9 })],
      ['repeats its first page of two', () => ({ page: 1, uids: ['a', 'b'], nextPage: 2, totalPages: 2 })],
      [
        'repeats its first page in another order',
        (page) => ({ uids: page % 2 ? ['a', 'b'] : ['b', 'a'], nextPage: page + 1 }),
      ],
      [
        'repeats its first page, and counts on',
        (page) => ({ uids: ['a'], nextPage: page + 1, totalPages: page + 1 }),
      ],
      [
        'repeats its first page up to the last',
        (page) => ({ uids: ['a'], ...(page < 2 ? { nextPage: 2 } : { last: true }), totalPages: 2 }),
      ],
      ['repeats pages in turn', (page) => ({ uids: [`u-${page % 3}`], nextPage: page + 1 })],
      ['lists nobody, and counts on', (page) => ({ uids: [], nextPage: page + 1 })],
      [
        'lists nobody on a million pages',
        (page) => ({ uids: [], nextPage: page + 1, totalPages: 1_000_000 }),
      ],
      [
        'lists anonymized users only, and counts on',
        (page) => ({ uids: [null], nextPage: page + 1, totalPages: page + 1 }),
      ],
    ])('rejects when it %s', async (_what, page) => {
      expect(await errorOf(uids(new MadeUp(page).users))).toMatchObject(incomplete);
    });

    it.each<[string, (page: number) => MadeUpPage]>([
      [
        'points backwards',
        (page) => ({ uids: page < 5 ? [`u-${page}`] : [], nextPage: page < 5 ? page - 1 : undefined }),
      ],
      [
        'stays where it is',
        (page) => ({ uids: [`u-${page}`], nextPage: Math.min(page + 1, 4), totalPages: 4 }),
      ],
      [
        'contradicts total-pages',
        (page) => ({
          uids: page < 5 ? [`u-${page}`] : [],
          nextPage: page < 5 ? page + 1 : undefined,
          totalPages: 2,
        }),
      ],
      [
        'follows an empty page',
        (page) => ({
          uids: page === 2 ? [] : [`u-${page > 2 ? page - 1 : page}`],
          nextPage: page < 5 ? page + 1 : undefined,
          last: page === 5,
        }),
      ],
    ])('comes to everybody when next-page %s', async (_what, page) => {
      expect(await uids(new MadeUp(page).users)).toEqual(['u-1', 'u-2', 'u-3', 'u-4']);
    });
  });

  it('ends when the service ignores the page and changes a field of each record', async () => {
    let views = 0;
    const asked: number[] = [];
    const users = iterateUsers((page) => {
      asked.push(page);
      const listed = ['a', 'b', null].map((uid) => ({ uid, seen_at: (views += 1) }));
      return Promise.resolve({ page: { page, users: listed }, follows: undefined });
    });
    expect(await uids(users)).toEqual(['a', 'b', null]);
    expect(asked).toEqual([1, 2, 3]);
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

  it('rejects after a hundred pages of anonymized users in a row, when the service counts none', async () => {
    const list = new MadeUp(() => ({ uids: [null] }));
    expect(await errorOf(uids(list.users))).toMatchObject(incomplete);
    expect(list.asked).toHaveLength(101);
  });

  it('follows the service over a gap', async () => {
    const list = new MadeUp((page) => ({
      uids: [`u-${page}`],
      ...(page < 5 ? { nextPage: page + 2 } : { last: true }),
    }));
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
