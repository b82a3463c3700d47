import { describe, expect, it } from '@jest/globals';
import { DebateSpaceRequestError, InvalidArgumentError } from '../../errors.js';
import { listedPage, userQuery, type ListedPage, type ListUsersQuery } from './listed-users.js';

function read(
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  asked: { page: number; perPage?: number } = { page: 1 },
): { value: ListedPage } | { failure: DebateSpaceRequestError } {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const reply = {
    operation: 'listUsers',
    status: 200,
    body: text,
    header: (name: string) => headers[name],
  } as const;
  try {
    return { value: listedPage(reply, asked) };
  } catch (failure) {
    if (failure instanceof DebateSpaceRequestError) return { failure };
    throw failure;
  }
}

const alice = { uid: 'alice', full_name: 'Alice', badges: [{ name: 'first' }], score: null };

describe('a page of the user list', () => {
  it.each([
    ['an envelope', { success: true, data: [alice] }],
    ['an envelope without success', { data: [alice] }],
    ['an envelope with more in it', { success: true, data: [alice], meta: { total: 1 } }],
    ['a bare array', [alice]],
  ])('may come as %s, and keeps unknown fields', (_what, body) => {
    expect(read(body)).toMatchObject({ value: { page: { users: [alice], page: 1 } } });
  });

  it('may have commas, brackets and quotes in its texts', () => {
    const odd = [{ uid: '\\"[{,'.repeat(40_000) }];
    expect(read(odd)).toMatchObject({ value: { page: { users: odd } } });
  });

  it('gives a host no prototype to copy with a user', () => {
    const found = read('[{"uid":"alice","__proto__":{"isAdmin":true}}]');
    if (!('value' in found)) throw found.failure;
    const copied = Object.assign({}, found.value.page.users[0]) as Record<string, unknown>;
    expect([copied.uid, copied.isAdmin]).toEqual(['alice', undefined]);
  });

  it('has the digits of a number for a uid', () => {
    const users = [{ uid: '42', id: 1 }];
    expect(read('[{"uid":42,"id":1}]')).toMatchObject({ value: { page: { users } } });
  });

  it('has everything that the headers say', () => {
    const headers = {
      total: '45',
      'total-pages': '3',
      'current-page': '2',
      'next-page': '3',
      'page-items': '20',
    };
    expect(read([alice], headers, { page: 2 })).toEqual({
      value: {
        page: { users: [alice], page: 2, perPage: 20, total: 45, totalPages: 3, nextPage: 3 },
        follows: true,
      },
    });
  });

  it.each<[string, Record<string, string>, { nextPage?: number; follows?: boolean }]>([
    ['no headers', {}, {}],
    ['a total alone', { total: '45' }, {}],
    ['a number of pages, and more to come', { 'total-pages': '3' }, { nextPage: 2, follows: true }],
    ['a number of pages that is reached', { 'total-pages': '1' }, { follows: false }],
    ['no pages at all', { 'total-pages': '0' }, { follows: false }],
    ['a next page', { 'next-page': '2' }, { nextPage: 2, follows: true }],
    ['an empty next page', { 'next-page': '' }, { follows: false }],
    ['rubbish', { total: 'many', 'total-pages': '-3', 'current-page': '1e3', 'next-page': 'null' }, {}],
  ])('with %s says what comes next', (_what, headers, { nextPage, follows }) => {
    expect(read([alice], headers)).toMatchObject({ value: { page: { nextPage }, follows } });
  });

  it.each([
    ['nothing', '', 'is empty'],
    [
      'a web page',
      '<html>',
      'something else than the service answers (200 with a web page); hint: check authUrl and baseUrl',
    ],
    ['cut-off JSON', '[{"uid":"al', 'is not whole JSON'],
    ['null', 'null', 'is not a list of users'],
    ['an object without data', { users: [] }, 'is not a list of users'],
    ['data that is an object', { success: true, data: {} }, 'is not a list of users'],
    ['texts instead of users', ['alice'], 'is not a list of users'],
    ['null among the users', [alice, null], 'is not a list of users'],
    ['a uid that JavaScript rounds', '[{"uid":9007199254740993}]', 'has a number for a uid'],
    ['more values than it may have', `[{"uid":"a","b":[${'0,'.repeat(50_000)}0]}]`, 'too many values'],
    ['deep nesting', `[{"uid":${'['.repeat(100)}${']'.repeat(100)}}]`, 'nested too deeply'],
    ['success false', { success: false, data: [alice] }, 'success: false'],
  ])('is refused as %s', (_what, body, problem) => {
    const result = read(body);
    expect('failure' in result && result.failure.message).toContain(problem);
  });
});

describe('the query of the user list', () => {
  it.each<[ListUsersQuery, string]>([
    [{}, 'page=1'],
    [{ page: 3, perPage: 50 }, 'page=3&per_page=50'],
    [{ sort: '-created_at', countless: true, limit: 0 }, 'page=1&sort=-created_at&countless=true&limit=0'],
    [{ 'created_at.gte': '2024-01-01T00:00:00Z' }, 'page=1&created_at.gte=2024-01-01T00%3A00%3A00Z'],
    [{ role: ['a', 'b'], 'x[]': [1, true] }, 'page=1&role=a&role=b&x%5B%5D=1&x%5B%5D=true'],
    [{ left: undefined, out: [] }, 'page=1'],
    [{ q: 'a&b=c#d é' }, 'page=1&q=a%26b%3Dc%23d+%C3%A9'],
    [{ constructor: 'x', toString: 'y' }, 'page=1&constructor=x&toString=y'],
  ])('of %j is %s', (asked, query) => {
    expect(userQuery(asked).toString()).toBe(query);
  });

  it.each([
    [{ per_page: 5 }, 'use perPage'],
    [{ api_key: 'x' }, "users.listAuth: 'apiKey'"],
    [{ access_token: 'x' }, 'sends the token in a header'],
    [{ page: 0 }, 'page must be a whole number from 1'],
    [{ page: -1 }, 'page must be'],
    [{ page: 1.5 }, 'page must be'],
    [{ page: '2' }, 'page must be'],
    [{ page: null }, 'page must be'],
    [{ page: Number.NaN }, 'page must be'],
    [{ perPage: 0 }, 'perPage must be a whole number from 1'],
    [{ perPage: Infinity }, 'perPage must be'],
    [{ role: { a: 1 } }, 'the filter role must be'],
    [{ role: null }, 'the filter role must be'],
    [{ role: ['a', ['b']] }, 'the filter role must be'],
  ])('of %j is refused', (asked, problem) => {
    const attempt = () => userQuery(asked as ListUsersQuery);
    expect(attempt).toThrow(InvalidArgumentError);
    expect(attempt).toThrow(problem);
  });
});
