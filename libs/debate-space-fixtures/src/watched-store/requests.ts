import type { Request } from 'express';
import { callsOf, recordCalls, type RecordedCall } from './recorded.js';
import { sessionsIn } from '../store-account.js';
import { methodOf } from './calls.js';
import { throwingCallback } from './uncaught.js';
import type { ContractKind } from './kinds.js';
import type { Check } from './watched.js';

type Method = (...args: unknown[]) => unknown;
type Call = (request: Request, callback: Method | undefined) => unknown;

const onStore =
  (name: string, args: (request: Request) => readonly unknown[]): Call =>
  (request, callback) =>
    methodOf(request.sessionStore, name).call(
      request.sessionStore,
      ...args(request),
      ...(callback ? [callback] : []),
    );

const withoutUser = ({ session }: Request): object => Object.assign({}, session, { user: undefined });

interface RequestCall {
  readonly call: Call;
  readonly needs: string;
  /** Whether hosts leave the callback out. */
  readonly alone?: boolean;
}

/** What a handler does whose request, and so whose user, is known. */
const calls: Record<string, RequestCall> = {
  'store.get': { needs: 'get', call: onStore('get', ({ sessionID }) => [sessionID]) },
  'store.set': {
    needs: 'set',
    alone: true,
    call: onStore('set', ({ sessionID, session }) => [sessionID, session]),
  },
  'store.set without the user': {
    needs: 'set',
    alone: true,
    call: (request, callback) => {
      request.session.user = undefined;
      return onStore('set', ({ sessionID, session }) => [sessionID, session])(request, callback);
    },
  },
  'store.set of a copy without the user': {
    needs: 'set',
    alone: true,
    call: onStore('set', (request) => [request.sessionID, withoutUser(request)]),
  },
  'store.touch': {
    needs: 'touch',
    alone: true,
    call: onStore('touch', ({ sessionID, session }) => [sessionID, session]),
  },
  'store.destroy': {
    needs: 'destroy',
    alone: true,
    call: onStore('destroy', ({ sessionID }) => [sessionID]),
  },
  'store.all': { needs: 'all', call: onStore('all', () => []) },
  'store.length': { needs: 'length', call: onStore('length', () => []) },
  'store.ids': { needs: 'ids', call: onStore('ids', () => []) },
  'store.regenerate': { needs: 'destroy', call: onStore('regenerate', (request) => [request]) },
  'store.load': { needs: 'get', call: onStore('load', ({ sessionID }) => [sessionID]) },
  'session.save': { needs: 'set', alone: true, call: ({ session }, callback) => session.save(callback) },
  'session.reload': { needs: 'get', call: ({ session }, callback) => session.reload(callback as never) },
  'session.destroy': {
    needs: 'destroy',
    alone: true,
    call: ({ session }, callback) => session.destroy(callback as never),
  },
  'session.regenerate': {
    needs: 'destroy',
    call: ({ session }, callback) => session.regenerate(callback as never),
  },
};

interface Selection {
  readonly made?: readonly [string, RequestCall][];
  readonly suits?: (kind: ContractKind, method: string) => boolean;
}

const checks = (
  title: string,
  see: (call: Call, request: Request, kind: ContractKind) => unknown,
  { made = Object.entries(calls), suits }: Selection = {},
): readonly Check<RecordedCall[]>[] =>
  made.map(([name, { call, needs }]) => ({
    name: `${name}() of a request ${title}`,
    needs: [needs],
    requests: true,
    ...(suits && { suits: (kind) => suits(kind, needs) }),
    prepare: recordCalls,
    observe: async ({ request, kind }, recorded) =>
      request(async (current) => {
        recorded.length = 0;
        const seen = await see(call, current, kind);
        return { seen, calls: callsOf(needs, recorded) };
      }),
  }));

const answered = async (work: (callback: Method) => unknown): Promise<unknown> =>
  new Promise((resolve) => {
    const call: { returned?: unknown } = {}; // some stores call back before they return
    call.returned = work((...results) => {
      setImmediate(resolve, {
        returned: kindOf(call.returned),
        results: results.length,
        error: String(results[0]),
      });
    });
  });

const kindOf = (returned: unknown): string =>
  typeof returned === 'object' && returned !== null ? returned.constructor.name : typeof returned;

/** In which order the callback runs among what was due before the call and after it. */
async function order(call: Call, request: Request, { remote }: ContractKind): Promise<readonly string[]> {
  const seen: string[] = [];
  const mark =
    (name: string): (() => void) =>
    () => {
      seen.push(name);
    };
  const marks = (when: string): void => {
    process.nextTick(mark(`next tick, ${when}`));
    queueMicrotask(mark(`microtask, ${when}`));
    if (!remote) setImmediate(mark(`immediate, ${when}`));
  };
  await new Promise<void>((resolve) => {
    marks('asked before the call');
    call(request, () => {
      seen.push('callback');
      setImmediate(resolve);
    });
    seen.push('returned');
    marks('asked after the call');
  });
  return seen;
}

export const requestChecks: readonly Check<RecordedCall[]>[] = [
  ...checks('gives back the same, and the store gets the same', (call, request) =>
    answered((callback) => call(request, callback)),
  ),
  ...checks(
    'has no callback, and gives back the same',
    async (call, request) => {
      const returned = call(request, undefined);
      await Promise.resolve(returned).catch(() => undefined);
      return kindOf(returned);
    },
    {
      made: Object.entries(calls).filter(([, { alone }]) => alone),
      suits: (kind, method) => !kind.unbearable?.(method, { callback: false, looks: true }),
    },
  ),
  ...checks('calls back in the same tick', order),
  ...checks(
    'has a callback that throws, and the error goes where it goes without us',
    (call, request) =>
      throwingCallback(
        (callback) => call(request, callback),
        () => sessionsIn(request.sessionStore, ['another']),
      ),
    { suits: ({ brokenByThrow }) => !brokenByThrow },
  ),
];
