import { once } from 'node:events';
import { oddCookies } from './rows.js';
import { cookieHosts, type CookieContext } from '../hosts/cookie-hosts.js';
import type { Ending, EndingStack } from './endings.js';

interface CookieEnding extends Ending<CookieContext> {
  readonly needs?: 'removeUser' | 'change' | 'revives';
}

const drop = ({ logOut }: CookieContext): unknown => logOut();
const swallowed = async (work: () => unknown): Promise<void> => {
  await Promise.resolve()
    .then(work)
    .catch(() => undefined);
};
const afterAbort =
  (act: (context: CookieContext) => unknown) =>
  async (context: CookieContext): Promise<void> => {
    await once(context.raw, 'close');
    await swallowed(() => act(context));
  };

const endings: readonly CookieEnding[] = [
  { name: 'the session is dropped', ends: true, act: drop },
  { name: 'the session is dropped beside odd cookies', ends: true, cookies: oddCookies, act: drop },
  { name: 'nothing changes beside odd cookies', ends: false, cookies: oddCookies, act: () => undefined },
  {
    name: 'the session is dropped, and then the handler throws',
    ends: true,
    act: async (context) => {
      await drop(context);
      throw new Error('after the end');
    },
  },
  {
    name: 'the user is taken out of it',
    ends: true,
    needs: 'removeUser',
    act: ({ removeUser }) => removeUser(),
  },
  { name: 'another user logs in', ends: true, act: ({ logIn }) => logIn('bob') },
  { name: 'the same user logs in again', ends: false, act: ({ logIn }) => logIn('alice') },
  {
    name: 'the session is dropped, and the same user logs in',
    ends: false,
    needs: 'revives',
    act: async (context) => {
      await drop(context);
      await context.logIn('alice');
    },
  },
  { name: 'something else changes', ends: false, needs: 'change', act: ({ change }) => change() },
  { name: 'nothing changes', ends: false, act: () => undefined },
  {
    name: 'a handler that throws',
    ends: false,
    act: () => {
      throw new Error('nothing to do with sessions');
    },
  },
  { name: 'dropped in a guard that refuses', ends: true, path: '/act-guarded', act: drop },
  { name: 'dropped on a route outside Nest', ends: true, path: '/outside', act: drop },
  {
    name: 'cleared through the raw response',
    ends: true,
    act: ({ raw, hijack }) => {
      hijack();
      raw
        .writeHead(204, {
          'Set-Cookie': ['session', 'session.0', 'session.1'].map((name) => `${name}=; Max-Age=0; Path=/`),
        })
        .end();
    },
  },
  {
    name: 'Clear-Site-Data clears the cookies',
    ends: true,
    act: ({ raw }) => raw.setHeader('Clear-Site-Data', '"cache", "cookies"'),
  },
  {
    name: 'Clear-Site-Data clears everything, by the raw response',
    ends: true,
    act: ({ raw, hijack }) => {
      hijack();
      raw.writeHead(204, { 'Clear-Site-Data': '"*"' }).end();
    },
  },
  {
    name: 'the same user logs in again, and Clear-Site-Data clears the cookies',
    ends: true,
    act: async ({ raw, logIn }) => {
      raw.setHeader('Clear-Site-Data', '"cookies"');
      await logIn('alice');
    },
  },
  {
    name: 'Clear-Site-Data clears something else',
    ends: false,
    act: ({ raw }) => raw.setHeader('Clear-Site-Data', '"cache", "storage"'),
  },
  {
    name: 'a cookie of something else is cleared',
    ends: false,
    act: ({ raw, hijack }) => {
      hijack();
      raw.writeHead(204, { 'Set-Cookie': 'session-theme=; Max-Age=0; Path=/' }).end();
    },
  },
  {
    name: 'dropped when the head has left',
    ends: false,
    act: async (context) => {
      context.hijack();
      context.raw.write('first ');
      await swallowed(() => drop(context));
      context.raw.end('last');
    },
  },
  { name: 'dropped after the client aborted', ends: false, aborts: true, act: afterAbort(drop) },
];

/** Sessions that live in a cookie. */
export const cookieStacks: readonly EndingStack<CookieContext>[] = cookieHosts.map(
  ({ name, login, start }) => ({
    name,
    // The cookies have to leave first.
    endings: endings
      .filter(({ needs }) => !needs || login[needs])
      .map((ending) => ({ ...ending, later: true })),
    start: ({ act, debateSpace }) => start({ act, debateSpace }),
  }),
);
