import { describe, expect, it } from '@jest/globals';
import { InvalidArgumentError } from '../../errors.js';
import { userQuery, type ListUsersQuery } from './listed-users.js';

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
