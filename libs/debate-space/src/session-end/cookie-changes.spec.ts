import { describe, expect, it } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { cookieChangesOf, type CookieChanges } from './browser-cookies.js';

const responseOf = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()));
const NOTHING = { setCookies: [], clearsCookies: false };

describe('the cookies that a head changes', () => {
  it.each<{ name: string; headers: Record<string, string | string[]>; changes: CookieChanges }>([
    { name: 'none', headers: { 'X-Cookie': 'set-cookie: a=1' }, changes: NOTHING },
    {
      name: 'two that are set, in any case',
      headers: { 'SET-cookie': ['a=1; Path=/', 'b=2'] },
      changes: { setCookies: ['a=1; Path=/', 'b=2'], clearsCookies: false },
    },
    {
      name: 'all, among other types',
      headers: { 'clear-site-data': '"cache",  "cookies" ,"storage"' },
      changes: { setCookies: [], clearsCookies: true },
    },
    {
      name: 'all, by the wildcard in a second header',
      headers: { 'Clear-Site-Data': ['"cache"', '"*"'] },
      changes: { setCookies: [], clearsCookies: true },
    },
    { name: 'none, by another type', headers: { 'Clear-Site-Data': '"cache"' }, changes: NOTHING },
    { name: 'none, by a type without quotes', headers: { 'Clear-Site-Data': 'cookies' }, changes: NOTHING },
  ])('are $name', ({ headers, changes }) => {
    const [byArgument, byMethod, unsent, byBoth] = [responseOf(), responseOf(), responseOf(), responseOf()];
    byArgument.writeHead(200, headers);
    byBoth.setHeader('Content-Type', 'text/plain').writeHead(200, headers);
    for (const response of [byMethod, unsent]) response.setHeaders(new Map(Object.entries(headers)));
    byMethod.writeHead(200);
    for (const response of [byArgument, byMethod, unsent, byBoth])
      expect(cookieChangesOf(response)).toEqual(changes);
  });
});

it('a head of HTTP/2, which Node.js renders when it leaves, changes no cookies that nobody has set', () => {
  expect(cookieChangesOf({ getHeader: () => undefined })).toEqual(NOTHING);
});
