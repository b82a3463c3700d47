import { describe, expect, it } from '@jest/globals';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { InvalidArgumentError, NoAccountsError } from '../../errors.js';
import type { FindAccounts, OrphanedUser } from './user-walks.js';

const { simulator, scripted, client, runtime } = serviceClients();
const people = (count: number) => Array.from({ length: count }, (_, at) => ({ uid: `u-${at + 1}` }));

/** A host with these accounts, and the questions that it was asked. */
class Host {
  readonly questions: (readonly string[])[] = [];

  constructor(private readonly accounts: ReadonlySet<string>) {}

  readonly findAccounts: FindAccounts = (uids) => {
    this.questions.push(uids);
    return Promise.resolve(uids.filter((uid) => this.accounts.has(uid)));
  };
}

async function uidsOf(orphans: AsyncIterable<OrphanedUser>): Promise<string[]> {
  const uids: string[] = [];
  for await (const { uid } of orphans) uids.push(uid);
  return uids;
}

describe('finding users without an account', () => {
  it('finds exactly the 50 of 250 that have none, in three questions of at most 100', async () => {
    const service = await simulator({ users: people(250) });
    const accounts = people(250).flatMap(({ uid }, at) => (at % 5 === 0 ? [] : [uid]));
    const host = new Host(new Set(accounts));
    const found = await uidsOf((await client(service)).orphans(host.findAccounts));
    expect(accounts).toHaveLength(200);
    expect(found).toEqual(people(250).flatMap(({ uid }, at) => (at % 5 === 0 ? [uid] : [])));
    expect(host.questions.map(({ length }) => length)).toEqual([100, 100, 50]);
    expect(service.received.of('list')).toHaveLength(3);
  });

  it('yields the users as the service lists them', async () => {
    const gone = { uid: 'ben', full_name: 'Ben', badges: [1] };
    const service = await scripted(({ index }) => ({ body: index === 0 ? [{ uid: 'ada' }, gone] : [] }));
    const found: OrphanedUser[] = [];
    for await (const user of (await client(service)).orphans(() => ['ada'])) found.push(user);
    expect(found).toEqual([gone]);
  });

  it('meets numbers of the service by their digits, as the search and the dry run do', async () => {
    const service = await scripted(({ url }) => ({
      body: /[?&]page=1\b/.test(url) ? [{ uid: 7 }, { uid: 42 }] : [],
    }));
    const { service: debate, erasures } = await runtime(service);
    expect(await uidsOf(debate.orphans(() => [7] as unknown as string[]))).toEqual(['42']);
    expect(await debate.findUser('42')).toEqual({ uid: '42' });
    expect(await erasures.dryRun(['42', '43'])).toMatchObject({ known: 1, notFoundItems: [2] });
  });

  it('leaves anonymized users out, and asks for nobody twice in one question', async () => {
    const users = [{ uid: null }, {}, { uid: '' }, { uid: 'ada' }, { uid: 'ben' }, { uid: 'ben' }];
    const service = await scripted(({ index }) => ({ body: index === 0 ? users : [] }));
    const host = new Host(new Set(['ada']));
    expect(await uidsOf((await client(service)).orphans(host.findAccounts))).toEqual(['ben']);
    expect(host.questions).toEqual([['ada', 'ben']]);
  });

  it('fills its questions across pages of anonymized users', async () => {
    const all = people(150).map((user, at) => (at % 3 === 0 ? {} : user));
    const service = await scripted(({ url }) => {
      const page = Number(/page=(\d+)/.exec(url)?.[1]);
      return { body: all.slice((page - 1) * 20, page * 20) }; // smaller pages than it was asked for
    });
    const host = new Host(new Set(['u-2']));
    expect(await uidsOf((await client(service)).orphans(host.findAccounts))).toHaveLength(99);
    expect(host.questions.map(({ length }) => length)).toEqual([100]);
  });

  it('asks nobody where nobody is registered', async () => {
    const service = await simulator({ users: [] });
    const host = new Host(new Set());
    expect(await uidsOf((await client(service)).orphans(host.findAccounts))).toEqual([]);
    expect(host.questions).toEqual([]);
  });

  it.each<[string, FindAccounts]>([
    ['an array', (uids) => uids.slice(1)],
    ['a Set', (uids) => new Set(uids.slice(1))],
    [
      'a promise of an iterator of a Map',
      (uids) => Promise.resolve(new Map(uids.slice(1).entries()).values()),
    ],
  ])('takes %s', async (_what, findAccounts) => {
    const service = await simulator({ users: people(3) });
    expect(await uidsOf((await client(service)).orphans(findAccounts))).toEqual(['u-1']);
  });

  it('asks for the next page and the next accounts only when the ones before are used up', async () => {
    const service = await simulator({ users: people(250) });
    const host = new Host(new Set(['u-100']));
    for await (const { uid } of (await client(service)).orphans(host.findAccounts)) if (uid === 'u-50') break;
    expect(host.questions).toHaveLength(1);
    expect(service.received.of('list')).toHaveLength(1);
  });

  describe('when none of the first users has an account', () => {
    it.each([3, 250])('refuses to call all %d orphans, and yields none of them', async (count) => {
      const service = await simulator({ users: people(count) });
      const host = new Host(new Set());
      const yielded: string[] = [];
      const error = await errorOf(
        (async () => {
          for await (const { uid } of (await client(service)).orphans(host.findAccounts)) yielded.push(uid);
        })(),
      );
      expect(error).toBeInstanceOf(NoAccountsError);
      expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NO_ACCOUNTS' });
      expect((error as Error).message).toContain('give allowNoMatch: true');
      expect((error as Error).message).not.toContain('u-1');
      expect(yielded).toEqual([]);
      expect(host.questions).toHaveLength(1);
    });

    it('yields all of them with allowNoMatch', async () => {
      const service = await simulator({ users: people(120) });
      const host = new Host(new Set());
      const orphans = (await client(service)).orphans(host.findAccounts, { allowNoMatch: true });
      expect(await uidsOf(orphans)).toHaveLength(120);
    });

    it('goes on when that is so of later users only', async () => {
      const service = await simulator({ users: people(250) });
      const host = new Host(new Set(people(100).map(({ uid }) => uid)));
      expect(await uidsOf((await client(service)).orphans(host.findAccounts))).toHaveLength(150);
    });
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
    const service = await simulator({ users: people(3) });
    const findAccounts = (() => Promise.resolve(answer)) as FindAccounts;
    const error = await errorOf(uidsOf((await client(service)).orphans(findAccounts)));
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect((error as Error).message).toContain(`orphans: findAccounts `);
    expect((error as Error).message).toContain(problem);
    expect((error as Error).message).not.toMatch(/u-1/i);
  });

  it('refuses what is no function before anything is sent', async () => {
    const service = await simulator({ users: people(3) });
    const debate = await client(service);
    expect(() => debate.orphans(['u-1'] as never)).toThrow(InvalidArgumentError);
    expect(service.received.all).toEqual([]);
  });

  it.each<[string, (error: Error) => FindAccounts]>([
    [
      'throws',
      (error) => () => {
        throw error;
      },
    ],
    ['rejects with', (error) => () => Promise.reject(error)],
  ])('fails with the very error that findAccounts %s', async (_what, failing) => {
    const service = await simulator({ users: people(3) });
    const error = new Error('the database is down');
    expect(await errorOf(uidsOf((await client(service)).orphans(failing(error))))).toBe(error);
  });

  it('fails with the error of the service', async () => {
    const service = await simulator({ users: people(150) });
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    const host = new Host(new Set(['u-1']));
    const error = await errorOf(uidsOf((await client(service)).orphans(host.findAccounts)));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_PERMISSION' });
    expect(host.questions).toEqual([]);
  });

  it('ends with the signal, also while findAccounts is under way', async () => {
    const service = await simulator({ users: people(3) });
    const debate = await client(service);
    const aborted = debate.orphans(() => [], { signal: AbortSignal.abort() });
    expect(await errorOf(uidsOf(aborted))).toMatchObject({ name: 'AbortError' });
    const controller = new AbortController();
    const hanging: FindAccounts = () => {
      controller.abort();
      return new Promise(() => undefined);
    };
    const error = await errorOf(uidsOf(debate.orphans(hanging, { signal: controller.signal })));
    expect(error).toMatchObject({ name: 'AbortError' });
  });

  it('waits for its slots of the rate limit', async () => {
    const service = await simulator({ users: people(250), rateLimit: { requests: 2, perMs: 200 } });
    const debate = await client(service, { http: { rateLimit: { requests: 2, perMs: 200 } } });
    const host = new Host(new Set(people(200).map(({ uid }) => uid)));
    expect(await uidsOf(debate.orphans(host.findAccounts))).toHaveLength(50);
    expect(service.received.all.every(({ status }) => status === 200)).toBe(true);
  });
});
