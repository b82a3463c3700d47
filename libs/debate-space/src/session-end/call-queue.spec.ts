import { describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Containment } from '../containment.js';
import type { DebateSpaceEvent } from '../debate-space-event.js';
import type { StoreMethod } from './store-call.js';
import { CallQueue } from './call-queue.js';

type Callback = (error?: unknown) => void;

const nothing = (): void => undefined;

function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = nothing;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

class Calls {
  readonly events: DebateSpaceEvent[] = [];
  readonly #calls = new CallQueue(new Containment((event) => this.events.push(event)), 250);

  call(method: StoreMethod, args: unknown[], sid: string | undefined, before: () => unknown): unknown {
    return this.#calls.call(method, {}, args, { where: 'store', sid, before });
  }

  pass(method: StoreMethod, args: unknown[], sid: string | undefined): unknown {
    return this.#calls.call(method, {}, args, { where: 'store', sid });
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

  it('are made in the end though what has to be done before never is', async () => {
    const { calls, reached, named } = callQueue();
    await calls.call(named('destroy'), [], 's1', () => new Promise(nothing));
    expect(reached).toEqual(['destroy']);
  });

  const failures: { readonly name: string; readonly before: () => unknown }[] = [
    { name: 'rejects', before: () => Promise.reject(new TypeError('of ours')) },
    { name: 'throws', before: () => { throw new TypeError('of ours'); } }, // prettier-ignore
  ];
  it.each(failures)(
    'are made though what has to be done before $name, and that is an event',
    async ({ before }) => {
      const { calls } = callQueue();
      expect(await calls.call(() => 'destroyed', [], 's1', before)).toBe('destroyed');
      expect(calls.events).toEqual([{ type: 'fault', where: 'store', error: 'TypeError' }]);
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

    it('tell the callback, once', async () => {
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
      const unhandled: unknown[] = [];
      const note = (reason: unknown): unknown => unhandled.push(reason);
      process.on('unhandledRejection', note);
      const { calls } = callQueue();
      void calls.call(throwing, ['s1'], 's1', nextTurn);
      await expect(calls.call(throwing, ['s1'], 's1', nextTurn)).rejects.toThrow('the store is down');
      await nextTurn();
      process.off('unhandledRejection', note);
      expect(unhandled).toEqual([]);
    });
  });

  it('that had to wait do not hide what a callback throws', async () => {
    const microtasks = jest.spyOn(globalThis, 'queueMicrotask').mockReturnValue(undefined);
    const { calls } = callQueue();
    const callback = (): never => {
      throw new Error('of the host');
    };
    const method = (...args: unknown[]): void => {
      (args[1] as Callback)();
    };
    await calls.call(method, ['s1', callback], 's1', nextTurn);
    const thrown = microtasks.mock.calls[0]?.[0];
    microtasks.mockRestore();
    expect(thrown).toThrow('of the host'); // there, it is uncaught – as from a store that calls back later
  });
});
