import { isPromise } from '../async/promises.js';
import { withTimeout } from '../async/with-timeout.js';
import type { WatchContext } from './context.js';

/** Methods that give a request its session, or may end one. */
const WATCHED = ['createSession', 'regenerate', 'touch', 'set', 'destroy', 'clear'] as const;

export type StoreMethodName = (typeof WATCHED)[number];

export type StoreMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Passes a call on to the store, with the `this` and the arguments of the caller. */
export type PassOn = (self: unknown, args: ArrayLike<unknown>) => unknown;

/** Wraps a method of the store. @param next calls the store's own method @returns what is called in its place */
export type StoreLayer = (name: StoreMethodName, next: PassOn) => PassOn;

/** The store cannot be changed: it is frozen, or an ES Proxy hands out its own methods. */
export class UnwatchableStoreError extends TypeError {
  override readonly name = 'TypeError';

  /** @param part what cannot be replaced, such as `method destroy` */
  constructor(readonly part: string) {
    super(`a session store's ${part} cannot be replaced`);
  }
}

type AnyStore = Record<string, StoreMethod | undefined>;
/** On a wrapper: the store's own method. */
const BEHIND = Symbol('wrapped method');

/**
 * Replaces methods of one store instance by own properties that pass each call on. The class's method is looked up at each
 * call, because an APM agent may patch the class later.
 * @returns how to take the wrappers away
 * @throws {@link UnwatchableStoreError} when the store cannot be changed
 */
export function patchStore(store: object, layer: StoreLayer): () => void {
  const target = store as AnyStore;
  const undo: (() => void)[] = [];
  const remove = (): void => {
    for (const restore of undo.splice(0)) restore();
  };
  for (const name of WATCHED) {
    if (typeof target[name] !== 'function') continue;
    const own = Object.hasOwn(target, name) ? target[name] : undefined;
    const behind = (): StoreMethod =>
      own ?? (Reflect.get(Object.getPrototypeOf(target) as object, name) as StoreMethod);
    const call = layer(name, (self, args) => Reflect.apply(behind(), self, args as unknown[]));
    const method = function (this: unknown, ...args: unknown[]): unknown {
      return this === target ? call(this, args) : Reflect.apply(behind(), this, args);
    };
    Object.defineProperty(method, BEHIND, { get: behind });
    undo.push(() => {
      if (target[name] !== method) return; // somebody else has wrapped it since
      if (own) target[name] = own;
      else Reflect.deleteProperty(target, name);
    });
    if (Reflect.set(target, name, method) && target[name] === method) continue;
    remove();
    throw new UnwatchableStoreError(`method ${name}`);
  }
  return remove;
}

/** The store's own method of this name, behind our wrappers; `undefined` when it has none. */
export function storeMethod(store: object, name: string): StoreMethod | undefined {
  let method: unknown = Reflect.get(store, name);
  while (typeof method === 'function' && BEHIND in method) method = Reflect.get(method, BEHIND);
  return typeof method === 'function' ? (method as StoreMethod) : undefined;
}

/** The outcome of a store call; `silent`: the store neither called back nor returned a promise. */
export type StoreOutcome = 'done' | 'failed' | 'silent';

/** A call of the store that may end a session. */
export class ObservedCall {
  outcome: StoreOutcome | undefined;
  #resolve: (() => void) | undefined;
  #settled: Promise<void> | undefined;

  /** The first outcome stands. */
  settle(outcome: StoreOutcome): void {
    this.outcome ??= outcome;
    this.#resolve?.();
  }

  /** Resolves when there is an outcome. */
  settled(): Promise<void> {
    return (this.#settled ??= new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.outcome !== undefined) resolve();
    }));
  }
}

/** Makes a call exactly as the caller would, and reports its outcome. @param settled must not throw */
export function observeCall(
  next: PassOn,
  self: unknown,
  args: ArrayLike<unknown>,
  settled: (outcome: StoreOutcome) => void,
): unknown {
  const callback = args[args.length - 1];
  let failure: unknown;
  const observer =
    typeof callback === 'function' &&
    function (this: unknown, ...results: unknown[]): unknown {
      [failure] = results;
      settled(failure ? 'failed' : 'done');
      return Reflect.apply(callback, this, results) as unknown;
    };
  let returned: unknown;
  try {
    const passed = Array.from(args);
    if (observer) passed[passed.length - 1] = observer;
    returned = next(self, passed);
  } catch (error) {
    settled('failed');
    throw error;
  }
  if (!isPromise(returned)) {
    if (!observer) settled('silent');
    return returned;
  }
  const observed = returned.then(
    (result) => {
      if (!observer) settled('done'); // with a callback, the promise may resolve long before the callback is called
      return result;
    },
    (error: unknown) => {
      settled('failed');
      // The store has passed the error to the callback, as `asCallback` of Bluebird and Knex does: it is handled.
      if (failure !== undefined && error === failure) observed.then(undefined, () => undefined);
      throw error;
    },
  );
  return observed;
}

/** In place of a session id: `clear` ends all sessions. */
const ALL_SESSIONS = Symbol('all sessions');

type SessionKey = string | typeof ALL_SESSIONS;

/**
 * The store calls that wait (session-endings.md, rule 8): each ends a session whose user nobody knows, and waits for the
 * read that finds the user, for at most `answerTimeoutMs`. Later calls for the same session stay behind it, and all later
 * calls stay behind a `clear`, which stays behind all earlier ones.
 */
export class WaitingCalls {
  readonly #context: Pick<WatchContext, 'containment' | 'reporter'>;
  /** The last waiting call by session id. The promises never reject. */
  readonly #last = new Map<SessionKey, Promise<void>>();

  constructor(context: Pick<WatchContext, 'containment' | 'reporter'>) {
    this.#context = context;
  }

  /** The calls that a call with these arguments has to wait for: those for the same sessions; all, if it is a `clear`. */
  before(args: ArrayLike<unknown>): Promise<unknown> | undefined {
    if (this.#last.size === 0) return undefined;
    const sids = sidsOf(args);
    const isClear = sids.includes(ALL_SESSIONS);
    const keys: readonly SessionKey[] = isClear ? [...this.#last.keys()] : [ALL_SESSIONS, ...sids];
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    return before.length > 0 ? Promise.all(before) : undefined;
  }

  callAfterRead(
    read: Promise<unknown>,
    where: string,
    call: () => unknown,
    args: ArrayLike<unknown>,
  ): unknown {
    const { answerTimeoutMs } = this.#context.reporter;
    return this.callAfter(withTimeout(read, answerTimeoutMs, undefined), where, call, args);
  }

  /** @returns what the call returns, for a caller that expects a promise */
  callAfter(before: Promise<unknown>, where: string, call: () => unknown, args: ArrayLike<unknown>): unknown {
    const callback = args[args.length - 1];
    const made = before.then(() => {
      try {
        return call();
      } catch (error) {
        if (typeof callback !== 'function') throw error;
        return void Reflect.apply(callback, undefined, [error]);
      }
    });
    const sids = sidsOf(args);
    const forget = (): void => {
      for (const sid of sids) if (this.#last.get(sid) === settled) this.#last.delete(sid);
    };
    const settled = made.then(forget, (error: unknown) => {
      forget();
      this.#context.containment.report(where, error); // the caller may not expect a promise
    });
    for (const sid of sids) this.#last.set(sid, settled);
    return made;
  }
}

/** The session ids of a call. Some stores take several at once; `clear` takes no id. */
function sidsOf(args: ArrayLike<unknown>): readonly SessionKey[] {
  const first = args[0];
  if (typeof first !== 'string' && !Array.isArray(first)) return [ALL_SESSIONS];
  return [first as string | string[]].flat();
}
