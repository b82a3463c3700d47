import { describe, expect, it } from '@jest/globals';
import {
  errorOf,
  serviceClients,
  type ScriptedAnswer,
  type ScriptedRequest,
} from '#support/service/service-clients.js';
import { InvalidArgumentError, NoAccountsError } from '../../errors.js';
import type { DebateSpaceUser, ListedPage, UserPage } from './listed-users.js';
import { findOrphans, iterateUsers, type FindAccounts, type OrphansOptions } from './user-walks.js';

const { simulator, scripted, client, runtime } = serviceClients();
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
  ])('yields everybody once, %s', async (_what, pagingHeaders, requests) => {
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

  it('throws from the loop, after the users that it has', async () => {
    const service = await simulator({ users: people(2) });
    const users = (await client(service)).users({ perPage: 1 })[Symbol.asyncIterator]();
    await users.next();
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    await expect(users.next()).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_PERMISSION' });
  });

  describe('through a service without paging headers', () => {
    const noPage = { error: 'no such page' };
    const web = '<!doctype html>';
    const list: ScriptedAnswer = { body: people(2) };
    /** The pages that a service answers, and the users of a walk over them or its error. */
    const answers: readonly (readonly [pages: readonly ScriptedAnswer[], result: string])[] = [
      // A page that does not exist ends the list behind a page that may have been the last one,
      [[list, { status: 404, body: noPage }], 'u-1,u-2'],
      [[list, { status: 404 }], 'u-1,u-2'],
      [[list, { status: 400, body: noPage }], 'u-1,u-2'],
      [[list, { status: 204 }], 'u-1,u-2'],
      [[list, { body: { success: true, data: null } }], 'u-1,u-2'],
      [[list, { body: 'null' }], 'u-1,u-2'],
      [[list, { body: [] }], 'u-1,u-2'],
      [[list, list, { status: 404 }], 'u-1,u-2'],
      // and any other answer is an error,
      [[list, { status: 404, body: web }], 'something else than the service answers (404 with a web page)'],
      [[list, { status: 400, body: web }], 'something else than the service answers (400 with a web page)'],
      [[list, { body: '' }], 'is empty'],
      [[list, { body: { success: false, data: null } }], 'refused the request (200 with success: false)'],
      [[list, { status: 401 }], 'did not accept the access token'],
      [[list, { status: 403 }], 'does not have the permission'],
      [[list, { status: 422 }], 'refused the request (422)'],
      [[list, { status: 503 }], 'is not available (503)'],
      // as it is for the first page,
      [[{ status: 404 }], 'there is no user list at {base_url}/users (404); hint: check baseUrl'],
      [[{ status: 400 }], 'refused the request (400)'],
      [[{ status: 204 }], 'is empty'],
      [[{ body: { data: null } }], 'is not a list of users'],
      // or for a page that the service has counted, then or earlier.
      [[{ ...list, headers: { total: '115' } }, { status: 400 }], 'refused the request (400)'],
      [
        [
          paged(1, { uids: ['a', 'b', 'c'], size: 1, total: false }),
          { body: [{ uid: 'b' }] },
          { status: 400 },
        ],
        '(400)',
      ],
    ];
    it('ends behind the last page, and rejects when a page is missing', async () => {
      let pages: readonly ScriptedAnswer[] = [];
      const service = await scripted((request) => pages[pageOf(request) - 1] ?? { body: [] });
      const debate = await client(service, { http: { maxAttempts: 1 } });
      for (const [given, result] of answers) {
        pages = given;
        const walked = await uids(debate.users()).then(String, String);
        expect([given, walked]).toEqual([given, expect.stringContaining(result)]);
      }
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

    it('yields everybody when as many users as a page has register in between', async () => {
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

    it('yields everybody when 20 users register between two pages of 20', async () => {
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
      'yields everybody who stays when users go between all pages, and it counts its %s',
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
    ])('yields everybody when next-page %s', async (_what, page) => {
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

  it('continues over equal pages of anonymized users, to the user behind them', async () => {
    const list = new MadeUp((page) => ({ uids: page < 10 ? [null, null] : page === 10 ? ['a'] : [] }));
    expect(await uids(list.users)).toContain('a');
    expect(list.asked).toHaveLength(11);
  });

  it('continues when a user has moved from one page to the next among anonymized ones', async () => {
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

/** The accounts of a host, and the questions that it was asked. */
class Host {
  readonly questions: (readonly string[])[] = [];
  readonly #accounts: ReadonlySet<string>;

  constructor(...accounts: readonly string[]) {
    this.#accounts = new Set(accounts);
  }

  readonly findAccounts: FindAccounts = (asked) => {
    this.questions.push(asked);
    return Promise.resolve(asked.filter((uid) => this.#accounts.has(uid)));
  };

  get batches(): readonly number[] {
    return this.questions.map(({ length }) => length);
  }
}

async function* each<U>(users: Iterable<U>): AsyncGenerator<U> {
  yield* await Promise.resolve(users);
}

/** The orphans among these users. */
const orphans = (
  users: Iterable<DebateSpaceUser>,
  findAccounts: FindAccounts,
  options: OrphansOptions = {},
) => uids(findOrphans(each(users), findAccounts, options));

describe('finding users without an account', () => {
  it('finds exactly the 50 of 250 that have none, in three questions of at most 100', async () => {
    const accounts = people(250).filter((_, at) => at % 5 > 0);
    const host = new Host(...accounts.map(({ uid }) => uid));
    const found = await orphans(people(250), host.findAccounts);
    expect(found).toEqual(people(250).flatMap(({ uid }, at) => (at % 5 === 0 ? [uid] : [])));
    expect(host.batches).toEqual([100, 100, 50]);
  });

  it('yields the users as the service lists them', async () => {
    const gone = { uid: 'ben', full_name: 'Ben', badges: [1] };
    const found = findOrphans(each([{ uid: 'ada' }, gone]), () => ['ada'], {});
    expect(await found.next()).toEqual({ value: gone, done: false });
  });

  it('meets numbers of the service by their digits, as the search and the dry run do', async () => {
    const service = await scripted((request) => ({
      body: pageOf(request) === 1 ? [{ uid: 7 }, { uid: 42 }] : [],
    }));
    const { service: debate, erasures } = await runtime(service);
    expect(await uids(debate.orphans(() => [7] as unknown as string[]))).toEqual(['42']);
    expect(await debate.findUser('42')).toEqual({ uid: '42' });
    expect(await erasures.dryRun(['42', '43'])).toMatchObject({ known: 1, notFoundItems: [2] });
  });

  it('leaves anonymized users out, and asks for nobody twice in one question', async () => {
    const host = new Host('ada');
    const users = [{ uid: null }, {}, { uid: '' }, { uid: 'ada' }, { uid: 'ben' }, { uid: 'ben' }];
    expect(await orphans(users, host.findAccounts)).toEqual(['ben']);
    expect(host.questions).toEqual([['ada', 'ben']]);
    const mixed = people(150).map((user, at) => (at % 3 === 0 ? {} : user));
    expect(await orphans(mixed, new Host('u-2').findAccounts)).toHaveLength(99);
    expect(await orphans([], host.findAccounts)).toEqual([]);
    expect(host.questions).toHaveLength(1);
  });

  it('takes an array, a Set, and a promise of any iterable', async () => {
    const answers: FindAccounts[] = [
      (asked) => asked.slice(1),
      (asked) => new Set(asked.slice(1)),
      (asked) => Promise.resolve(new Map(asked.slice(1).entries()).values()),
    ];
    for (const findAccounts of answers) expect(await orphans(people(3), findAccounts)).toEqual(['u-1']);
  });

  it('asks for the next page and the next accounts only when the ones before are used up', async () => {
    const service = await simulator({ users: people(250) });
    const host = new Host('u-100');
    for await (const { uid } of (await client(service)).orphans(host.findAccounts)) if (uid === 'u-50') break;
    expect(host.questions).toHaveLength(1);
    expect(service.received.of('list')).toHaveLength(1);
  });

  it.each([3, 250])('refuses to call all %d users orphans, and yields none of them', async (count) => {
    const host = new Host();
    const error = await errorOf(findOrphans(each(people(count)), host.findAccounts, {}).next());
    expect(error).toBeInstanceOf(NoAccountsError);
    expect((error as Error).message).toContain('give allowNoMatch: true');
    expect((error as Error).message).not.toContain('u-1');
    expect(host.questions).toHaveLength(1);
  });

  it('yields all users with allowNoMatch, and when only later users have no account', async () => {
    const { findAccounts } = new Host();
    expect(await orphans(people(120), findAccounts, { allowNoMatch: true })).toHaveLength(120);
    const first = new Host(...people(100).map(({ uid }) => uid));
    expect(await orphans(people(250), first.findAccounts)).toHaveLength(150);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'must return an array or a Set of uids, and returned undefined'],
    ['a boolean', true, 'returned of type boolean'],
    ['one uid', 'u-1', 'returned of type string'],
    ['a count', { length: 2 }, 'returned of type object'],
    ['booleans', [true], 'one item is of type boolean; hint: return rows.map((row) => String(row.id))'],
    ['rows', [{ uid: 'u-1' }], 'one item is of type object'],
    ['entries', new Map([['u-1', true]]), 'one item is of type object'],
    ['another spelling', ['U-1'], 'returned a uid that was not in its argument'],
  ])('refuses %s for an answer, without repeating it', async (_what, answer, problem) => {
    const error = await errorOf(orphans(people(3), (() => Promise.resolve(answer)) as FindAccounts));
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect((error as Error).message).toContain(`orphans: findAccounts `);
    expect((error as Error).message).toContain(problem);
    expect((error as Error).message).not.toMatch(/u-1/i);
  });

  it('refuses something else than a function before anything is sent', async () => {
    const service = await simulator({ users: people(3) });
    const debate = await client(service);
    expect(() => debate.orphans(['u-1'] as never)).toThrow(InvalidArgumentError);
    expect(service.received.all).toEqual([]);
  });

  it('fails with the very error of findAccounts, or of the list', async () => {
    const error = new Error('the database is down');
    const throwing: FindAccounts = () => {
      throw error;
    };
    expect(await errorOf(orphans(people(3), throwing))).toBe(error);
    expect(await errorOf(orphans(people(3), () => Promise.reject(error)))).toBe(error);
    async function* broken(): AsyncGenerator<DebateSpaceUser> {
      yield* await Promise.reject<DebateSpaceUser[]>(error);
    }
    expect(await errorOf(uids(findOrphans(broken(), () => [], {})))).toBe(error);
  });

  it('ends with the signal, also while findAccounts is running', async () => {
    const service = await simulator({ users: people(3) });
    const debate = await client(service);
    const aborted = debate.orphans(() => [], { signal: AbortSignal.abort() });
    expect(await errorOf(uids(aborted))).toMatchObject({ name: 'AbortError' });
    const controller = new AbortController();
    const hanging: FindAccounts = () => {
      controller.abort();
      return new Promise(() => undefined);
    };
    const error = await errorOf(uids(debate.orphans(hanging, { signal: controller.signal })));
    expect(error).toMatchObject({ name: 'AbortError' });
  });

  it('waits for its slots of the rate limit', async () => {
    const service = await simulator({ users: people(250), rateLimit: { requests: 2, perMs: 200 } });
    const debate = await client(service, { http: { rateLimit: { requests: 2, perMs: 200 } } });
    const host = new Host(...people(200).map(({ uid }) => uid));
    expect(await uids(debate.orphans(host.findAccounts))).toHaveLength(50);
    expect(service.received.all.every(({ status }) => status === 200)).toBe(true);
  });
});
