import { beforeEach, describe, expect, it } from '@jest/globals';
import { Reflector, type ModuleRef } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { NEVER, defer, lastValueFrom, of, retry, throwError, type Observable } from 'rxjs';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import type { LogoutQueue } from '../logout/queue/logout-queue.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import { SessionEndInterceptor } from './session-end.interceptor.js';

const LEASE_MS = 600;
const MS = { noting: 20, noted: 200, moreThanLease: 1_500 };

let outbox: LogoutQueue;
let response: { closed: boolean };
beforeEach(() => {
  outbox = memoryQueue();
  response = { closed: false };
});

/** What an app's server subscribes to. */
function intercepted(handle: () => Observable<unknown>): Observable<unknown> {
  const recorder = new EndRecorder(outbox, () => undefined, {
    leaseMs: LEASE_MS,
  });
  const moduleRef = { get: () => recorder } as unknown as ModuleRef;
  const interceptor = new SessionEndInterceptor(moduleRef, new Reflector());
  const context = new ExecutionContextHost([{ user: { id: 'alice' } }, response], Object, () => undefined);
  return interceptor.intercept(context, { handle });
}

/** The outbox takes a moment to note an end. */
function noteSlowly(): void {
  const held = outbox.hold.bind(outbox);
  outbox.hold = (...args) => pause(MS.noting).then(() => held(...args));
}

const due = async (): Promise<string[]> => (await outbox.claim(10, 1_000)).map(({ entry }) => entry.uid);

describe('the session of a user whose logout handler', () => {
  it('hangs is reported after the lease when the client has gone', async () => {
    const subscription = intercepted(() => NEVER).subscribe();
    response.closed = true;
    await pause(MS.moreThanLease);
    expect(await due()).toEqual(['alice']);
    subscription.unsubscribe();
  });

  it('runs for longer than the lease is not reported while the client waits', async () => {
    const subscription = intercepted(() => NEVER).subscribe();
    await pause(MS.moreThanLease);
    expect(await due()).toEqual([]);
    subscription.unsubscribe();
  });

  it('never ran, because somebody in front gave up while the end was noted, is not reported', async () => {
    noteSlowly();
    let ran = false;
    const handle = (): Observable<unknown> => {
      ran = true;
      return of('bye');
    };
    intercepted(handle).subscribe().unsubscribe();
    await pause(MS.noted);
    expect(ran).toBe(false);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
  });

  it('nobody subscribes to is not reported', async () => {
    intercepted(() => of('bye'));
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
  });

  it.each(['immediately', 'slowly'])(
    'fails first and succeeds when it is tried again is reported (noted %s)',
    async (noted) => {
      if (noted === 'slowly') noteSlowly();
      let runs = 0;
      const handle = (): Observable<unknown> =>
        defer(() => ((runs += 1) === 1 ? throwError(() => new Error('not yet')) : of('bye')));
      expect(await lastValueFrom(intercepted(handle).pipe(retry(1)))).toBe('bye');
      await pause(0);
      expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    },
  );

  it('cannot even be called is not reported', async () => {
    const broken = (): never => {
      throw new Error('of the host');
    };
    await expect(lastValueFrom(intercepted(broken))).rejects.toThrow('of the host');
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
  });
});

it.each(['immediately', 'slowly'])(
  'a handler is called in the AsyncLocalStorage of the interceptor in front (noted %s)',
  async (noted) => {
    if (noted === 'slowly') noteSlowly();
    const storage = new AsyncLocalStorage<string>();
    const handle = (): Observable<unknown> => of(storage.getStore());
    const handled = storage.run('of the request', () => intercepted(handle));
    expect(await lastValueFrom(handled)).toBe('of the request');
  },
);
