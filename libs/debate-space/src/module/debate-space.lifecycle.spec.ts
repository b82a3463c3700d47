import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DebateSpaceEvent } from '../events.js';
import type { Guest } from '../storage/engine.js';
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

describe('a drain', () => {
  const overdue = jest.fn(() => Promise.resolve());

  interface Parts {
    readonly storage: object;
    readonly memory?: object;
    readonly guest?: Guest | undefined;
    readonly execute?: () => Promise<void>;
  }

  /** The workers of a process with `worker: false`. */
  function workersOn({ storage, memory, guest, execute }: Parts): Workers {
    const application = {
      options: { worker: false, storage: { guest }, logout: {}, erasure: {} },
      ...{ storage, memory, emit: () => undefined, watch: { isOpen: true } },
    };
    const breaker = { waitMs: 0, concurrency: 1, isOpen: false };
    const work = { storage, batch: 1, pauseMs: () => 0, breaker, execute };
    const delivery = { stored: { ...work, kind: 'logout' } };
    const erasures = { ...work, kind: 'erasure', maintain: overdue };
    return new Workers(
      ...([application, delivery, erasures] as unknown as ConstructorParameters<typeof Workers>),
    );
  }

  /** Drains such a process. @returns how often more could be pruned, and the kinds of jobs that were claimed */
  async function drained(guest?: Guest) {
    const left = { storage: 3, memory: 3 };
    const claimed = new Set<string>();
    const storage = {
      claim: (kind: string) => {
        claimed.add(kind);
        return Promise.resolve({ claims: [], nextMs: undefined });
      },
      prune: () => Promise.resolve((left.storage -= 1) > 0),
    };
    const memory = { prune: () => Promise.resolve((left.memory -= 1) > 0) };
    const workers = workersOn({ storage, memory, guest });
    await workers.workOff(1_000);
    return { left, claimed: [...claimed] };
  }

  it('removes all that is too old, in memory as well, however little one call removes', async () => {
    expect(await drained()).toEqual({ left: { storage: 0, memory: 0 }, claimed: ['logout', 'erasure'] });
    expect(overdue).toHaveBeenCalledTimes(1);
  });

  it.each([['logout'], ['erasure']] as const)(
    'of a guest works on its kind of jobs only (%s), removes nothing and reports nothing as overdue',
    async (kind) => {
      overdue.mockClear();
      const left = { storage: 3, memory: 0 };
      expect(await drained({ kinds: [kind] })).toEqual({ left, claimed: [kind] });
      expect(overdue).not.toHaveBeenCalled();
    },
  );

  it('that the host aborts waits for the jobs that run', async () => {
    const abort = new AbortController();
    const claims = [{ id: 'a logout' }];
    const storage = {
      claim: (kind: string) => Promise.resolve({ claims: kind === 'logout' ? claims.splice(0) : [] }),
      prune: () => Promise.resolve(false),
    };
    let hasEnded = false;
    const execute = async (): Promise<void> => {
      abort.abort();
      await sleep(50);
      hasEnded = true;
    };
    const workers = workersOn({ storage, execute });
    await workers.workOff(60_000, abort.signal);
    expect(hasEnded).toBe(true);
  });
});
