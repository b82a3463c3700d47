import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DebateSpaceEvent } from '../events.js';
import { shutDown, Workers, type ApplicationParts } from './debate-space.lifecycle.js';

const ORDER = [
  ...['recorder.close', 'sessions.close', 'workers.stop', 'abort', 'workers.idle', 'logouts.moveToStorage'],
  ...['watch.stop', 'transport.close', 'storage.close', 'complete'],
];

/** An application whose parts note the steps, in which they do what `act` does. */
function application(act: (step: string) => unknown, durable = false, waiting = 0) {
  const steps: string[] = [];
  const events: DebateSpaceEvent[] = [];
  const step = (name: string) => (): unknown => {
    steps.push(name);
    return act(name);
  };
  const shutdown = new AbortController();
  shutdown.signal.addEventListener('abort', () => steps.push('abort'));
  const shared = {
    emit: (event: DebateSpaceEvent) => events.push(event),
    options: { worker: true, storage: { durable } },
    storage: { close: step('storage.close'), counts: () => Promise.resolve({ waiting, parked: 0 }) },
    watch: { stop: step('watch.stop') },
    shutdown,
    events: { complete: () => steps.push('complete') },
  };
  const parts = {
    application: shared,
    sessions: { close: step('sessions.close'), recorder: { close: step('recorder.close') } },
    logouts: { moveToStorage: step('logouts.moveToStorage') },
    workers: { stop: step('workers.stop'), idle: step('workers.idle') },
    transport: { close: step('transport.close') },
  } as unknown as ApplicationParts;
  return { steps, events, shut: () => shutDown(parts) };
}

describe('the shutdown', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('goes from the sessions down to the storage', async () => {
    const { steps, events, shut } = application(() => 0);
    await shut();
    expect(steps).toEqual(ORDER);
    expect(events).toEqual([]);
  });

  const failing = ORDER.filter((step) => step.includes('.'));
  it.each(failing)('continues when %s fails', async (failed) => {
    const { steps, events, shut } = application((step) => {
      if (step === failed) throw new RangeError();
      return 0;
    });
    await shut();
    expect(steps).toEqual(ORDER);
    expect(events).toEqual([{ type: 'fault', where: 'shutdown', error: 'RangeError' }]);
  });

  it('reports what waits in a durable storage, and what it could not move there as lost', async () => {
    const { events, shut } = application((step) => (step === 'logouts.moveToStorage' ? 40 : 0), true, 2);
    await shut();
    expect(events).toEqual([{ type: 'shutdown-incomplete', pending: 42, lost: 40 }]);
  });

  it('reports what waits in memory as lost', async () => {
    const { events, shut } = application(() => 0, false, 2);
    await shut();
    const lost = { type: 'shutdown-incomplete', pending: 2, lost: 2 };
    expect(events).toEqual([lost, { type: 'erasures-dropped', count: 2 }]);
  });

  it('ends within five seconds when no step of it answers', async () => {
    const { steps, shut } = application(() => new Promise(() => undefined));
    const done = shut();
    await jest.advanceTimersByTimeAsync(4_700);
    expect(steps).not.toContain('complete');
    await jest.advanceTimersByTimeAsync(600);
    await done;
    expect(steps).toEqual(ORDER);
  });
});

/** The workers of a process with `worker: false`. */
function workersOn(storage: object, memory?: object, execute?: () => Promise<void>): Workers {
  const application = {
    ...{ options: { worker: false, storage: {}, logout: {}, erasure: {} }, storage, memory },
    ...{ emit: () => undefined, watch: { isOpen: true } },
  };
  const breaker = { waitMs: 0, concurrency: 1, isOpen: false };
  const work = { storage, batch: 1, breaker, pauseMs: () => 0, execute };
  const delivery = { stored: { ...work, kind: 'logout' } };
  const erasures = { ...work, kind: 'erasure', maintain: () => Promise.resolve() };
  return new Workers(
    ...([application, delivery, erasures] as unknown as ConstructorParameters<typeof Workers>),
  );
}

it('a process that works removes all that is too old, in memory as well, however little one call removes', async () => {
  const left = { storage: 3, memory: 3 };
  const storage = {
    claim: () => Promise.resolve({ claims: [], nextMs: undefined }),
    prune: () => Promise.resolve((left.storage -= 1) > 0),
  };
  const memory = { prune: () => Promise.resolve((left.memory -= 1) > 0) };
  const workers = workersOn(storage, memory);
  await workers.workOff(1_000);
  expect(left).toEqual({ storage: 0, memory: 0 });
});

it('a drain that the host aborts waits for the jobs that run', async () => {
  const abort = new AbortController();
  const claims = [{ id: 'a logout' }];
  const storage = {
    claim: (kind: string) => Promise.resolve({ claims: kind === 'logout' ? claims.splice(0) : [] }),
    prune: () => Promise.resolve(false),
  };
  let hasEnded = false;
  const workers = workersOn(storage, undefined, async () => {
    abort.abort();
    await sleep(50);
    hasEnded = true;
  });
  await workers.workOff(60_000, abort.signal);
  expect(hasEnded).toBe(true);
});
