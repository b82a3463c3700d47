import { describe, expect, it } from '@jest/globals';
import { Failure } from '../http/failure.js';
import { listedPage, type ListedPage } from './listed-users.js';

function read(
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  asked: { page: number; perPage?: number } = { page: 1 },
): { value: ListedPage } | { failure: Failure } {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  try {
    return { value: listedPage({ status: 200, body: text, header: (name) => headers[name] }, asked) };
  } catch (failure) {
    if (failure instanceof Failure) return { failure };
    throw failure;
  }
}

const alice = { uid: 'alice', full_name: 'Alice', badges: [{ name: 'first' }], score: null };
const link = (...links: string[]) => ({ link: links.join(', ') });

describe('a page of the user list', () => {
  it.each([
    ['an envelope', { success: true, data: [alice] }],
    ['an envelope without success', { data: [alice] }],
    ['an envelope with more in it', { success: true, data: [alice], meta: { total: 1 } }],
    ['a bare array', [alice]],
  ])('may come as %s, and keeps unknown fields', (_what, body) => {
    expect(read(body)).toMatchObject({ value: { page: { users: [alice], page: 1 }, last: false } });
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
        last: false,
        more: true,
      },
    });
  });

  it.each<[string, Record<string, string>, { nextPage?: number; last: boolean }]>([
    ['no headers', {}, { last: false }],
    ['a total alone', { total: '45' }, { last: false }],
    ['a number of pages, and more to come', { 'total-pages': '3' }, { nextPage: 2, last: false }],
    ['a number of pages that is reached', { 'total-pages': '1' }, { last: true }],
    ['no pages at all', { 'total-pages': '0' }, { last: true }],
    ['a next page', { 'next-page': '2' }, { nextPage: 2, last: false }],
    ['an empty next page', { 'next-page': '' }, { last: true }],
    [
      'rubbish',
      { total: 'many', 'total-pages': '-3', 'current-page': '1e3', 'next-page': 'null' },
      { last: false },
    ],
    [
      'a link to the next',
      link('<https://x/users?page=2&per_page=9>; rel="next"'),
      { nextPage: 2, last: false },
    ],
    ['a link without quotes', link('</users?per_page=9&page=2>; rel=next'), { nextPage: 2, last: false }],
    [
      'a link of two relations',
      link('</users?page=2>; title="a"; rel="last next"'),
      { nextPage: 2, last: false },
    ],
    ['a link with commas in it', link('</users?page=2&sort=a,b>; rel="next"'), { nextPage: 2, last: false }],
    [
      'a next link after others',
      link('</u?page=1>; rel="first"', '</u?page=2>; rel="next"'),
      { nextPage: 2, last: false },
    ],
    ['a next link without a page', link('</users?cursor=abc>; rel="next"'), { last: false }],
    [
      'links, and none to the next',
      link('</u?page=1>; rel="first"', '</u?page=1>; rel="last"'),
      { last: true },
    ],
    ['a link that is no page', link('<https://cdn.example>; rel=preconnect'), { last: false }],
  ])('with %s says what comes next', (_what, headers, { nextPage, last }) => {
    const result = read([alice], headers);
    expect(result).toMatchObject({ value: { last } });
    expect('value' in result && result.value.page.nextPage).toBe(nextPage);
  });

  it.each([
    ['nothing', '', 'is empty'],
    [
      'a web page',
      '<html>',
      'something else than the service answers (200 with a web page); check authUrl and baseUrl',
    ],
    ['cut-off JSON', '[{"uid":"al', 'is not whole JSON'],
    ['null', 'null', 'is not a list of users'],
    ['an object without data', { users: [] }, 'is not a list of users'],
    ['data that is no list', { success: true, data: {} }, 'is not a list of users'],
    ['users that are none', ['alice'], 'is not a list of users'],
    ['a user among none', [alice, null], 'is not a list of users'],
    [
      'a record of deeply nested JSON',
      `[{"uid":"alice","deep":${'['.repeat(20_000)}${']'.repeat(20_000)}}]`,
      'is nested deeper than 100 levels',
    ],
    ['a uid that JavaScript rounds', '[{"uid":9007199254740993}]', 'has a number for a uid'],
    ['success false', { success: false, data: [alice] }, 'success: false'],
  ])('is refused as %s', (_what, body, problem) => {
    const result = read(body);
    expect('failure' in result && result.failure.message).toContain(problem);
  });
});
