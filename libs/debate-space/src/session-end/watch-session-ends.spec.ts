import { expect, it, jest } from '@jest/globals';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { SessionEndWatcher } from './watch-session-ends.js';

it('an Express app whose requests cannot be watched for stores has its own methods back when the library leaves', () => {
  const faults: unknown[] = [];
  const onFault = (where: string, error: unknown): unknown => faults.push([where, (error as Error).name]);
  const handle = (): void => undefined;
  const response = Object.create({ end: () => undefined, write: () => undefined }) as object;
  const app = { handle, request: Object.freeze({}), response };
  const adapter = { getType: () => 'express', getInstance: () => app };

  const watcher = new SessionEndWatcher({
    onSessionEnd: () => undefined,
    onFault,
  });
  watcher.attach(adapter as unknown as AbstractHttpAdapter);
  expect(faults).toEqual([['HTTP adapter', 'TypeError']]);
  expect(app.handle).not.toBe(handle);
  watcher.detach();

  expect(app.handle).toBe(handle);
  expect(Reflect.ownKeys(response)).toEqual([]);
});

it('an app closes although its listener never comes to its end', async () => {
  const store = {
    get: (_: string, done: (error: unknown, session?: object) => void) => {
      done(null, { user: 'alice' });
    },
    set: () => undefined,
    destroy: (_: string, done: (error?: unknown) => void) => {
      done(null);
    },
  };
  const onSessionEnd = (): Promise<void> => new Promise(() => undefined);
  const watcher = new SessionEndWatcher({ onSessionEnd });
  watcher.watch(store);
  store.destroy('s1', () => undefined);
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'performance'] });
  try {
    const closed = watcher.close();
    await jest.advanceTimersByTimeAsync(5_000);
    await closed;
  } finally {
    jest.useRealTimers();
  }
}, 10_000);
