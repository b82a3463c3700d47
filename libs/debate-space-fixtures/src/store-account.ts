import { setImmediate as nextTurn } from 'node:timers/promises';
import { isPromise } from 'node:util/types';

/** A way to call a store. Anyone who does not look at what a store returns may leave a rejection unhandled. */
export interface Caller {
  readonly callback: boolean;
  readonly looks: boolean;
}
export const callers: readonly (Caller & { readonly name: string })[] = [
  { name: 'with a callback', callback: true, looks: false },
  { name: 'with a callback, awaiting what it returns', callback: true, looks: true },
  { name: 'awaiting what it returns', callback: false, looks: true },
  { name: 'and nothing else', callback: false, looks: false },
];

type Outcome =
  | { readonly returned: unknown }
  | { readonly threw: unknown }
  | { readonly resolved: unknown }
  | { readonly rejected: unknown };

interface Callback {
  readonly this: string;
  readonly args: readonly unknown[];
  readonly beforeItReturned?: boolean;
}

/** All that a host can learn from a call. */
export interface Account {
  readonly outcome?: Outcome;
  readonly callbacks: readonly Callback[];
}

/** How often one call of a store goes to its server, at most: connect-redis lists before it deletes. */
const MAX_TRIPS = 3;

type Method = (...args: unknown[]) => unknown;

/** Calls the store, and tells what came of it. Callbacks are added until the store is done. */
export async function accountOf(
  store: object,
  [name, ...args]: readonly [method: string, ...args: unknown[]],
  { callback, looks }: Caller,
): Promise<Account> {
  const callbacks: Callback[] = [];
  let beforeItReturned = true;
  const noted = function (this: unknown, ...results: unknown[]): void {
    const self = this === store ? 'the store' : String((this as object | undefined)?.constructor.name);
    callbacks.push({ this: self, args: results, beforeItReturned });
  };
  const outcome = await outcomeOf(() => {
    try {
      return (Reflect.get(store, name) as Method).apply(store, callback ? [...args, noted] : args);
    } finally {
      beforeItReturned = false;
    }
  }, looks);
  return { outcome, callbacks };
}

async function outcomeOf(call: () => unknown, looks: boolean): Promise<Outcome> {
  try {
    const returned = call();
    if (!isPromise(returned)) return { returned };
    if (!looks) return { returned: 'a promise' };
    return await returned.then(
      (resolved) => ({ resolved }),
      (rejected: unknown) => ({ rejected }),
    );
  } catch (threw) {
    return { threw };
  }
}

/**
 * The same account from a store that takes its time, which is what a call becomes that has to wait: what it returned it
 * resolves to, and what it threw it tells the callback, or else it rejects.
 */
export function later({ outcome, callbacks }: Account, { callback, looks }: Caller): Account {
  const calls = callbacks.map(({ this: self, args }) => ({ this: self, args }));
  if (outcome && 'threw' in outcome) {
    if (callback) calls.push({ this: 'undefined', args: [outcome.threw] });
    if (!looks) return { callbacks: calls };
    return { outcome: callback ? { resolved: undefined } : { rejected: outcome.threw }, callbacks: calls };
  }
  if (!looks || !outcome) return { callbacks: calls };
  return { outcome: 'returned' in outcome ? { resolved: outcome.returned } : outcome, callbacks: calls };
}

/**
 * The sessions that a store has, read as its hosts do. By then it is done with all that it was told before, if it takes
 * one thing after the other, and what comes late or twice has come: callbacks, unhandled rejections.
 */
export async function sessionsIn(store: object, sids: readonly string[], promises = false): Promise<unknown> {
  const get = (Reflect.get(store, 'get') as Method).bind(store);
  const read = (sid: string): Promise<unknown> =>
    promises
      ? (get(sid) as Promise<unknown>)
      : new Promise(
          (resolve) =>
            void get(sid, (error: unknown, row: unknown) => {
              resolve(error ? 'unreadable' : row);
            }),
        );
  let sessions: readonly unknown[] = [];
  for (let trip = 0; trip < MAX_TRIPS; trip += 1) {
    sessions = await Promise.all(sids.map(read));
    await nextTurn();
  }
  return Object.fromEntries(sids.map((sid, index) => [sid, sessions[index]]));
}
