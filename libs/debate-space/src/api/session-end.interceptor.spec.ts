import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Reflector, type ModuleRef } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NEVER, defer, lastValueFrom, of, retry, throwError, type Observable } from 'rxjs';
import type { SessionEnd } from '../session-end/session-end.js';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { defaultUid, requestOf, SessionEndInterceptor } from './session-end.interceptor.js';

let ends: string[];
let isSlow: boolean;
beforeEach(() => {
  [ends, isSlow] = [[], false];
});

/** What an app's server subscribes to. */
function intercepted(handle: () => Observable<unknown>, type = 'http'): Observable<unknown> {
  const onSessionEnd = async ({ uid }: SessionEnd): Promise<void> => {
    if (isSlow) await nextTurn();
    ends.push(uid);
  };
  const watcher = new SessionEndWatcher({ onSessionEnd });
  const moduleRef = { get: () => watcher } as unknown as ModuleRef;
  const interceptor = new SessionEndInterceptor(moduleRef, new Reflector());
  const context = new ExecutionContextHost([{ user: { id: 'alice' } }, {}], Object, () => undefined);
  context.setType(type);
  return interceptor.intercept(context, { handle });
}

describe('the session of a user whose logout handler', () => {
  it('hangs is not reported while the client waits, and reported when somebody in front gives up', () => {
    const subscription = intercepted(() => NEVER).subscribe();
    expect(ends).toEqual([]);
    subscription.unsubscribe();
    expect(ends).toEqual(['alice']);
  });

  it('succeeds is stored before the answer is complete', async () => {
    isSlow = true;
    expect(await lastValueFrom(intercepted(() => of('bye')))).toBe('bye');
    expect(ends).toEqual(['alice']);
  });

  it('fails is not reported', async () => {
    const failing = intercepted(() => throwError(() => new Error('of the host')));
    await expect(lastValueFrom(failing)).rejects.toThrow('of the host');
    expect(ends).toEqual([]);
  });

  it.each(['immediately', 'slowly'])(
    'fails first and succeeds when it is tried again is reported (stored %s)',
    async (stored) => {
      isSlow = stored === 'slowly';
      let runs = 0;
      const handle = (): Observable<unknown> =>
        defer(() => ((runs += 1) === 1 ? throwError(() => new Error('not yet')) : of('bye')));
      expect(await lastValueFrom(intercepted(handle).pipe(retry(1)))).toBe('bye');
      expect(ends).toEqual(['alice']);
    },
  );

  it('cannot even be called is not reported', async () => {
    const broken = (): never => {
      throw new Error('of the host');
    };
    await expect(lastValueFrom(intercepted(broken))).rejects.toThrow('of the host');
    expect(ends).toEqual([]);
  });
});

it.each(['ws', 'rpc'])('a handler of type %s runs, reports nothing, and causes a warning', async (type) => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  expect(await lastValueFrom(intercepted(() => of('bye'), type))).toBe('bye');
  expect(ends).toEqual([]);
  expect(warn.mock.calls.join()).toContain('call logoutUser of DebateSpaceService');
  warn.mockRestore();
});

it.each(['immediately', 'slowly'])(
  'a handler is called in the AsyncLocalStorage of the interceptor in front (stored %s)',
  async (stored) => {
    isSlow = stored === 'slowly';
    const storage = new AsyncLocalStorage<string>();
    const handle = (): Observable<unknown> => of(storage.getStore());
    const handled = storage.run('of the request', () => intercepted(handle));
    expect(await lastValueFrom(handled)).toBe('of the request');
  },
);

function callOf(type: string, ...args: unknown[]): ReturnType<typeof requestOf> {
  const context = new ExecutionContextHost(args);
  context.setType(type);
  return requestOf(context);
}

const request = { user: { sub: 'alice' } };
const response = {};

describe('the caller of a handler', () => {
  it.each([
    { who: 'the request of HTTP', args: [request], type: 'http' },
    { who: 'req of a GraphQL context', args: [{}, {}, { req: request }], type: 'graphql' },
    { who: 'request of a GraphQL context', args: [{}, {}, { request }], type: 'graphql' },
    { who: 'mercurius’ reply of a GraphQL context', args: [{}, {}, { reply: { request } }], type: 'graphql' },
    { who: 'a GraphQL context without a request', args: [{}, {}, request], type: 'graphql' },
    { who: 'no GraphQL context', args: [], type: 'graphql', uid: undefined },
    { who: 'a request that nobody has logged in', args: [{ user: null }], type: 'http', uid: undefined },
  ])('is $who', ({ type, args, ...expected }) => {
    const { uid } = { uid: 'alice', ...expected };
    expect(defaultUid(callOf(type, ...args)?.request ?? {})).toBe(uid);
  });

  const overHttp = { req: { ...request, res: response } };
  const overWebSocket = { req: request };
  it.each([
    { who: 'Express by the response', args: [request, response], type: 'http', marks: [response] },
    { who: 'Fastify by the response', args: [request, { raw: response }], type: 'http', marks: [response] },
    {
      who: 'GraphQL by the context and the response',
      args: [{}, {}, overHttp],
      type: 'graphql',
      marks: [overHttp, response],
    },
    {
      who: 'GraphQL over a WebSocket by the context',
      args: [{}, {}, overWebSocket],
      type: 'graphql',
      marks: [overWebSocket],
    },
  ])('is recognized again in $who', ({ type, args, marks }) => {
    expect(callOf(type, ...args)?.marks.filter((mark) => mark !== undefined)).toEqual(marks);
  });
});
