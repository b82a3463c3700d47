import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { originalProcess } from 'debate-space-fixtures/original-process.js';
import { Containment } from './containment.js';
import { CallQueue } from './call-queue.js';
import type { PassOn, StoreMethod } from './patch-store.js';

type Callback = (error?: unknown) => void;

const nothing = (): void => undefined;

function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = nothing;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

const passOn =
  (method: StoreMethod): PassOn =>
  (self, args) =>
    Reflect.apply(method, self, args) as unknown;

class Calls {
  readonly faults: unknown[] = [];
  readonly #calls = new CallQueue(
    new Containment((where, error) => this.faults.push({ where, error: (error as Error).name })),
    250,
  );

  call(method: StoreMethod, args: unknown[], sid: string | undefined, before: () => unknown): unknown {
    return this.#calls.call('store', passOn(method), {}, args, { sid, before });
  }

  pass(method: StoreMethod, args: unknown[], sid: string | undefined): unknown {
    return this.#calls.call('store', passOn(method), {}, args, { sid });
  }
}

/** Calls that note in which order they reach the store. */
function callQueue(): { calls: Calls; reached: string[]; named: (name: string) => () => number } {
  const reached: string[] = [];
  const named = (name: string) => (): number => reached.push(name);
  return { calls: new Calls(), reached, named };
}

describe('calls of a store', () => {
  it('are made in the same tick when nothing has to be done before', () => {
    const { calls, reached, named } = callQueue();
    expect(calls.pass(named('first'), [], 's1')).toBe(1);
    expect(reached).toEqual(['first']);
  });

  it('on one session keep their order while the first has to wait; other sessions pass', async () => {
    const { calls, reached, named } = callQueue();
    const { passed, open } = gate();
    void calls.call(named('destroy s1'), [], 's1', () => passed);
    const set = calls.pass(named('set s1'), [], 's1');
    const get = calls.pass(named('get s1'), [], 's1');
    calls.pass(named('get s2'), [], 's2');
    expect(reached).toEqual(['get s2']);
    open();
    await Promise.all([set, get]);
    expect(reached).toEqual(['get s2', 'destroy s1', 'set s1', 'get s1']);
    calls.pass(named('get s1 later'), [], 's1');
    expect(reached.at(-1)).toBe('get s1 later'); // in the same tick again
  });

  it('on all sessions wait for every one before, and every one after waits for them', async () => {
    const { calls, reached, named } = callQueue();
    const [destroying, clearing] = [gate(), gate()];
    void calls.call(named('destroy s1'), [], 's1', () => destroying.passed);
    void calls.call(named('clear'), [], undefined, () => clearing.passed);
    const set = calls.pass(named('set s2'), [], 's2');
    clearing.open();
    await nextTurn();
    expect(reached).toEqual([]);
    destroying.open();
    await set;
    expect(reached).toEqual(['destroy s1', 'clear', 'set s2']);
  });

  it('of thousands begin to wait a hundred in each turn of the event loop, and a later one does not queue behind', async () => {
    const { calls, reached, named } = callQueue();
    const { passed, open } = gate();
    let begun = 0;
    const call = (n: number): unknown =>
      calls.call(named('destroy'), [], `s${n}`, () => {
        begun += 1;
        return passed;
      });
    const all = Array.from({ length: 250 }, (_, n) => call(n));
    expect(begun).toBe(100);
    await nextTurn();
    expect(begun).toBe(200);
    all.push(call(250));
    expect(begun).toBe(201);
    await nextTurn();
    expect(begun).toBe(251);
    open();
    await Promise.all(all);
    expect(reached).toHaveLength(251);
  });

  it('are made in the end though what has to be done before never is', async () => {
    const { calls, reached, named } = callQueue();
    await calls.call(named('destroy'), [], 's1', () => new Promise(nothing));
    expect(reached).toEqual(['destroy']);
  });

  const failures: { readonly name: string; readonly before: () => unknown }[] = [
    { name: 'rejects', before: () => Promise.reject(new TypeError('of ours')) },
    {
      name: 'throws',
      before: () => {
        throw new TypeError('of ours');
      },
    },
  ];
  it.each(failures)(
    'are made though what has to be done before $name, and that is a fault',
    async ({ before }) => {
      const { calls } = callQueue();
      expect(await calls.call(() => 'destroyed', [], 's1', before)).toBe('destroyed');
      expect(calls.faults).toEqual([{ where: 'store', error: 'TypeError' }]);
    },
  );

  it('are made in the same tick though what has to be done before throws', () => {
    const { calls } = callQueue();
    const before = (): never => {
      throw new Error('of ours');
    };
    expect(calls.call(() => 'destroyed', [], 's1', before)).toBe('destroyed');
  });

  describe('that had to wait, when the store throws', () => {
    const throwing = (): never => {
      throw new Error('the store is down');
    };

    it('call the callback once', async () => {
      const { calls } = callQueue();
      const told: unknown[] = [];
      await new Promise<void>((resolve) => {
        const callback: Callback = (error) => {
          told.push(error);
          resolve();
        };
        void calls.call(throwing, ['s1', callback], 's1', nextTurn);
      });
      await nextTurn();
      expect(told).toEqual([new Error('the store is down')]);
    });

    it('reject for a caller that listens, and leave no rejection unhandled for one that does not', async () => {
      const ignored = ignoringErrorsOfProcess();
      const { calls } = callQueue();
      void calls.call(throwing, ['s1'], 's1', nextTurn);
      await expect(calls.call(throwing, ['s1'], 's1', nextTurn)).rejects.toThrow('the store is down');
      await nextTurn();
      expect(ignored.stop()).toEqual([]);
    });
  });

  describe('that had to wait, when the callback throws', () => {
    const callback = (): never => {
      throw new RangeError('of the host');
    };
    const stores: { readonly name: string; readonly method: StoreMethod }[] = [
      {
        name: 'that calls back in the same tick',
        method: (...args) => {
          (args[1] as Callback)();
        },
      },
      {
        name: 'that throws',
        method: () => {
          throw new Error('the store is down');
        },
      },
    ];

    it.each(stores)('in a store $name reject with that error', async ({ method }) => {
      const { calls } = callQueue();
      await expect(calls.call(method, ['s1', callback], 's1', nextTurn)).rejects.toThrow('of the host');
    });

    it.each(stores)(
      'in a store $name do not end the process, and the error is an event',
      async ({ method }) => {
        const ignored = ignoringErrorsOfProcess();
        const { calls } = callQueue();
        void calls.call(method, ['s1', callback], 's1', nextTurn);
        await nextTurn();
        await nextTurn();
        expect(ignored.stop()).toEqual([]);
        expect(calls.faults).toEqual([{ where: 'store', error: 'RangeError' }]);
      },
    );
  });

  describe('that had to wait, when the promise of the store rejects', () => {
    const rejecting = (): Promise<never> => Promise.reject(new Error('the store is down'));

    it('reject as without the plugin, and the failure of the store is no fault of the plugin', async () => {
      const { calls } = callQueue();
      await expect(calls.call(rejecting, ['s1'], 's1', nextTurn)).rejects.toThrow('the store is down');
      await nextTurn();
      expect(calls.faults).toEqual([]);
    });

    it('leave one unhandled rejection for a caller that ignores the promise, as without the plugin', async () => {
      const ignored = ignoringErrorsOfProcess();
      const { calls } = callQueue();
      void calls.call(rejecting, ['s1'], 's1', nextTurn);
      await nextTurn();
      await nextTurn();
      expect(ignored.stop()).toEqual(['unhandled: the store is down']);
    });
  });

  it.each([
    { name: 'in the same tick', before: nothing },
    { name: 'after a wait', before: nextTurn },
  ])(
    'whose promise the store handles by the callback leave no rejection unhandled, $name',
    async ({ before }) => {
      const ignored = ignoringErrorsOfProcess();
      const told: unknown[] = [];
      const asCallback: StoreMethod = (...args) => {
        const promise = Promise.reject(new Error('the store is down'));
        promise.catch(args[1] as Callback); // as Bluebird and Knex do
        return promise;
      };
      const calls = new CallQueue(new Containment(nothing), 250);
      const args = ['s1', (error: unknown) => told.push(error)];
      void calls.call('store', passOn(asCallback), {}, args, { sid: 's1', before, ended: nothing });
      await nextTurn();
      await nextTurn();
      expect(ignored.stop()).toEqual([]);
      expect(told).toEqual([new Error('the store is down')]);
    },
  );

  describe('that a store makes itself while it starts one that had to wait', () => {
    const nested: { readonly name: string; readonly outer?: string; readonly inner?: string }[] = [
      { name: 'a call on one session calls another on the same session', outer: 's1', inner: 's1' },
      { name: 'a call on all sessions calls one on one session', inner: 's1' },
      { name: 'a call on all sessions calls another on all sessions' },
    ];

    it.each(nested)('come before the later calls of the host when $name', async ({ outer, inner }) => {
      const { calls, reached, named } = callQueue();
      const { passed, open } = gate();
      const method = (): unknown => {
        reached.push('outer');
        return calls.call(named('inner'), [], inner, nextTurn);
      };
      void calls.call(method, [], outer, () => passed);
      const later = calls.pass(named('later'), [], 's1');
      open();
      await later;
      expect(reached).toEqual(['outer', 'inner', 'later']);
    });

    it('wait for their turn when they are on another session', async () => {
      const { calls, reached, named } = callQueue();
      const [first, second] = [gate(), gate()];
      void calls.call(
        () => calls.pass(named('inner s2'), [], 's2'),
        [],
        's1',
        () => first.passed,
      );
      const other = calls.call(named('destroy s2'), [], 's2', () => second.passed);
      first.open();
      await nextTurn();
      expect(reached).toEqual([]);
      second.open();
      await other;
      await nextTurn();
      expect(reached).toEqual(['destroy s2', 'inner s2']);
    });
  });
});

/** What would end the process is noted instead. */
function ignoringErrorsOfProcess(): { readonly stop: () => readonly string[] } {
  const seen: string[] = [];
  const original = originalProcess();
  const listeners = original.listeners('unhandledRejection');
  const unhandled = (error: unknown): unknown => seen.push(`unhandled: ${(error as Error).message}`);
  original.removeAllListeners('unhandledRejection').on('unhandledRejection', unhandled);
  original.setUncaughtExceptionCaptureCallback((error) => seen.push(`uncaught: ${error.message}`));
  return {
    stop: () => {
      original.setUncaughtExceptionCaptureCallback(null);
      original.removeAllListeners('unhandledRejection');
      for (const listener of listeners) original.on('unhandledRejection', listener);
      return seen;
    },
  };
}
