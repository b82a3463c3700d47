import type { Handling, HostSession, Platform } from './platforms.js';
import type { Callback, StoreKind } from './stores.js';

/** How a handler makes a call. */
export interface Style {
  readonly name: string;
  readonly callback: boolean;
  readonly awaits: boolean;
}

const callbackAwaited: Style = { name: 'its callback awaited', callback: true, awaits: true };
export const callbackOnly: Style = { name: 'with a callback, not awaited', callback: true, awaits: false };
const promiseAwaited: Style = { name: 'its promise awaited', callback: false, awaits: true };
const forgotten: Style = { name: 'neither awaited nor called back', callback: false, awaits: false };

/** A handler at work. */
export interface Acting extends Handling {
  readonly store: Readonly<Record<string, (...args: unknown[]) => unknown>>;
  /** The user who has logged in, in two browsers; the request is of the first one. */
  readonly alice: string;
  readonly bob: string;
  readonly sids: readonly [own: string, other: string];
}

export interface Action {
  readonly name: string;
  /** What comes before the call, or all there is. */
  readonly first?: (acting: Acting) => void;
  readonly call?: (acting: Acting, callback: Callback | undefined) => unknown;
  /** When the call has called back, or was awaited. */
  readonly then?: (acting: Acting) => void;
  readonly styles: (platform: Platform, kind: StoreKind) => readonly Style[];
  /** Whether the call ends sessions whose user no request of theirs can tell: it may wait for a read that can. */
  readonly readsFirst?: boolean;
  /** Whether it ends the sessions of earlier cells as well: played on a host of its own. */
  readonly endsAll?: boolean;
}

const none: Style = { name: 'left to the response', callback: false, awaits: false };
const always = (): readonly Style[] => [none];
const onExpress = ({ express }: Platform): readonly Style[] => (express ? [none] : []);

/** @param bare whether Express can do it without a callback */
const ofSession =
  (bare: boolean): Action['styles'] =>
  ({ express, unset }, { needsCallback = false }) => {
    if (unset) return [];
    const byCallback = [callbackAwaited, callbackOnly];
    if (!express) return [...byCallback, promiseAwaited, forgotten];
    return bare && !needsCallback ? [...byCallback, forgotten] : byCallback;
  };

const ofStore =
  (method: string): Action['styles'] =>
  ({ express, unset }, kind) => {
    const { promises = false, needsCallback = false } = kind;
    if (unset || (!express && needsCallback && !OF_ANY_STORE.includes(method))) return [];
    const byCallback = [callbackAwaited, callbackOnly];
    if (promises) return [...byCallback, promiseAwaited, forgotten];
    return needsCallback || READS.includes(method) ? byCallback : [...byCallback, forgotten];
  };

const OF_ANY_STORE = ['get', 'set', 'destroy'];
const READS = ['get', 'all', 'length'];

const session = ({ request }: Acting): HostSession => {
  if (!request.session) throw new Error('the request has no session');
  return request.session;
};

const sessionCalls: readonly Action[] = [
  {
    name: 'session.save()',
    styles: ofSession(true),
    call: (acting, callback) => session(acting).save(callback),
  },
  {
    name: 'session.destroy()',
    styles: ofSession(true),
    call: (acting, callback) => session(acting).destroy(callback),
  },
  {
    name: 'session.destroy(), and the cookie cleared',
    styles: ofSession(true),
    first: (acting) => {
      acting.clearCookie();
    },
    call: (acting, callback) => session(acting).destroy(callback),
  },
  {
    name: 'session.regenerate()',
    styles: ofSession(false),
    call: (acting, callback) => session(acting).regenerate(callback),
  },
  {
    name: 'session.regenerate(), and then a login of the same user',
    styles: ofSession(false),
    call: (acting, callback) => session(acting).regenerate(callback),
    then: (acting) => {
      session(acting).user = { uid: acting.alice };
    },
  },
  {
    name: 'session.regenerate(), and then a login of another user',
    styles: ofSession(false),
    call: (acting, callback) => session(acting).regenerate(callback),
    then: (acting) => {
      session(acting).user = { uid: acting.bob };
    },
  },
  {
    name: 'session.reload()',
    styles: ofSession(false),
    call: (acting, callback) => session(acting).reload(callback),
  },
  {
    name: 'another user in the session, and session.save()',
    styles: ofSession(true),
    first: (acting) => {
      session(acting).user = { uid: acting.bob };
    },
    call: (acting, callback) => session(acting).save(callback),
  },
  {
    name: 'no user in the session, and session.save()',
    styles: ofSession(true),
    first: (acting) => {
      delete session(acting).user;
    },
    call: (acting, callback) => session(acting).save(callback),
  },
];

const changes: readonly Action[] = [
  { name: 'nothing', styles: always },
  {
    name: 'session.touch()',
    styles: always,
    first: (acting) => {
      session(acting).touch();
    },
  },
  {
    name: 'another user in the session',
    styles: always,
    first: (acting) => {
      session(acting).user = { uid: acting.bob };
    },
  },
  {
    name: 'no user in the session',
    styles: always,
    first: (acting) => {
      delete session(acting).user;
    },
  },
  {
    name: 'session = null',
    styles: always,
    first: ({ request }) => {
      request.session = null;
    },
  },
  {
    name: 'delete request.session',
    styles: onExpress,
    first: ({ request }) => {
      delete (request as Partial<typeof request>).session;
    },
  },
  {
    name: 'the cookie cleared',
    styles: always,
    first: (acting) => {
      acting.clearCookie();
    },
  },
];

type Call = NonNullable<Action['call']>;

/** A method of the store, called by the handler. */
const storeCall = (
  method: string,
  args: (acting: Acting) => readonly unknown[],
  what: string,
  more: Partial<Action> = {},
): Action => {
  const call: Call = (acting, callback) =>
    acting.store[method]?.(...args(acting), ...(callback ? [callback] : []));
  return { name: `store.${method}(${what})`, styles: ofStore(method), call, ...more };
};

const row = (acting: Acting, uid: string | undefined): object => ({
  cookie: session(acting).cookie,
  ...(uid !== undefined && { user: { uid } }),
});
const own = ({ sids: [sid] }: Acting): string => sid;
const other = ({ sids: [, sid] }: Acting): string => sid;

const readsFirst = { readsFirst: true };

const storeCalls: readonly Action[] = [
  storeCall('get', (acting) => [own(acting)], 'its own session'),
  storeCall('get', (acting) => [other(acting)], 'another session'),
  storeCall('get', () => ['unknown'], 'no session'),
  storeCall('set', (acting) => [own(acting), row(acting, acting.alice)], 'its own session'),
  storeCall('set', (acting) => [own(acting), row(acting, undefined)], 'its own session, without its user'),
  storeCall('set', (acting) => [own(acting), row(acting, acting.bob)], 'its own session, with another user'),
  storeCall('set', (acting) => [other(acting), row(acting, acting.alice)], 'another session', readsFirst),
  storeCall(
    'set',
    (acting) => [other(acting), row(acting, undefined)],
    'another session, without its user',
    readsFirst,
  ),
  storeCall(
    'set',
    (acting) => [other(acting), row(acting, acting.bob)],
    'another session, with another user',
    readsFirst,
  ),
  storeCall('touch', (acting) => [own(acting), row(acting, acting.alice)], 'its own session'),
  storeCall('touch', (acting) => [other(acting), row(acting, acting.alice)], 'another session'),
  storeCall('destroy', (acting) => [own(acting)], 'its own session'),
  storeCall('destroy', (acting) => [other(acting)], 'another session', readsFirst),
  storeCall('destroy', () => ['unknown'], 'no session', readsFirst),
  storeCall('all', () => [], ''),
  storeCall('length', () => [], ''),
  storeCall('clear', () => [], '', { readsFirst: true, endsAll: true }),
];

export const actions: readonly Action[] = [...changes, ...sessionCalls, ...storeCalls];
