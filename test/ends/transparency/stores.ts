import fastifySession from '@fastify/session';
import session, { Store, type SessionData } from 'express-session';

export type Callback = (error?: unknown, result?: unknown) => void;
type Method = (this: unknown, ...args: unknown[]) => unknown;
type Answer = ((error: unknown, result?: never) => void) | undefined;

export interface Row {
  readonly user?: { readonly uid: string } | undefined;
}

export interface OpenedStore {
  readonly store: object;
  /** What it holds now, without a call of any method. */
  readonly sids: () => readonly string[];
  readonly row: (sid: string) => Row | undefined;
  readonly isBusy: () => boolean;
}

export interface StoreKind {
  readonly name: string;
  readonly open: () => OpenedStore;
  /** Whether `get` calls back before it returns. */
  readonly synchronous: boolean;
  /** Whether its methods return promises, besides calling back. */
  readonly promises?: boolean;
  /** Whether it throws without a callback. */
  readonly needsCallback?: boolean;
}

/** Keeps sessions as text. When, and how, it answers is the matter of the kinds. */
abstract class TextStore extends Store {
  readonly saved = new Map<string, string>();
  pending = 0;

  protected abstract answer(work: () => unknown, callback: Answer): unknown;

  override get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): unknown {
    return this.answer(() => parsed(this.saved.get(sid)), callback);
  }
  override set(sid: string, data: SessionData, callback?: (error?: unknown) => void): unknown {
    const text = JSON.stringify(data);
    return this.answer(() => void this.saved.set(sid, text), callback);
  }
  override touch(sid: string, data: SessionData, callback?: () => void): unknown {
    const { cookie } = JSON.parse(JSON.stringify(data)) as SessionData;
    return this.answer(() => {
      const row = parsed(this.saved.get(sid));
      if (row) this.saved.set(sid, JSON.stringify({ ...row, cookie }));
    }, callback);
  }
  override destroy(sid: string, callback?: (error?: unknown) => void): unknown {
    return this.answer(() => void this.saved.delete(sid), callback);
  }
  override all(callback: (error: unknown, all?: Record<string, SessionData> | null) => void): unknown {
    const rows = (): (readonly [string, unknown])[] =>
      [...this.saved].map(([sid, row]) => [sid, parsed(row)]);
    return this.answer(() => Object.fromEntries(rows()), callback);
  }
  override length(callback: (error: unknown, length?: number) => void): unknown {
    return this.answer(() => this.saved.size, callback);
  }
  override clear(callback?: (error?: unknown) => void): unknown {
    return this.answer(() => {
      this.saved.clear();
    }, callback);
  }
}

class SynchronousStore extends TextStore {
  protected override answer(work: () => unknown, callback: Answer): void {
    const result = work() as never;
    callback?.(null, result);
  }
}

/** As over one connection to a server: what is asked first is done first. */
class AsynchronousStore extends TextStore {
  protected override answer(work: () => unknown, callback: Answer): void {
    this.pending += 1;
    setTimeout(() => {
      this.pending -= 1;
      const result = work() as never;
      callback?.(null, result);
    }, 1);
  }
}

/** As connect-redis: the methods are async functions, which call back before they resolve. */
class PromiseStore extends TextStore {
  protected override async answer(work: () => unknown, callback: Answer): Promise<unknown> {
    this.pending += 1;
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.pending -= 1;
    const result = work();
    callback?.(null, result as never);
    return result;
  }
}

function parsed(text: string | undefined): SessionData | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as SessionData);
}

const textStore = (name: string, Kind: new () => TextStore, more: Partial<StoreKind> = {}): StoreKind => ({
  name,
  synchronous: false,
  ...more,
  open: () => {
    const store = new Kind();
    const { saved } = store;
    const row = (sid: string): Row | undefined => parsed(saved.get(sid));
    return { store, sids: () => [...saved.keys()], row, isBusy: () => store.pending > 0 };
  },
});

export const storeKinds: readonly StoreKind[] = [
  textStore('synchronous', SynchronousStore, { synchronous: true }),
  {
    name: 'deferred', // by setImmediate
    synchronous: false,
    open: () => {
      const store = new session.MemoryStore();
      const saved = (): Record<string, string> =>
        (store as unknown as { sessions: Record<string, string> }).sessions; // `clear` makes another object
      const row = (sid: string): Row | undefined => parsed(saved()[sid]);
      return { store, sids: () => Object.keys(saved()), row, isBusy: () => false };
    },
  },
  textStore('asynchronous', AsynchronousStore),
  textStore('promise-returning', PromiseStore, { promises: true }),
];

/** Keeps the very objects that it is given. Has `get`, `set` and `destroy`, and calls back without looking. */
export const ownStoreOfFastify: StoreKind = {
  name: 'MemoryStore of @fastify/session, synchronous',
  synchronous: true,
  needsCallback: true,
  open: () => {
    const store = new fastifySession.MemoryStore();
    const { store: rows } = store as unknown as { store: Map<string, Row> };
    return { store, sids: () => [...rows.keys()], row: (sid) => rows.get(sid), isBusy: () => false };
  },
};

const WRITES = ['set', 'touch', 'destroy', 'clear'];

/** Has a store tell of each write that reaches it, as a subclass would. Reads are not told: the plugin may read. */
export function recordWrites(store: object, note: (name: string, args: readonly unknown[]) => void): void {
  const between = Object.create(Reflect.getPrototypeOf(store)) as object;
  for (const name of WRITES) {
    const method: unknown = Reflect.get(store, name);
    if (typeof method !== 'function') continue;
    const value: Method = function (...args) {
      note(name, args);
      return Reflect.apply(method, this, args) as unknown;
    };
    Object.defineProperty(value, 'length', { value: method.length });
    Object.defineProperty(between, name, { value, writable: true, configurable: true });
  }
  Object.setPrototypeOf(store, between);
}
