/* Session stores as hosts write them, small: each differs from the first in one way. */

export type Callback = (error: unknown, result?: unknown, ...more: unknown[]) => void;

/** Methods on the prototype; callbacks with a `this` and an argument of the store's own, return values as well. */
export class PrototypeStore {
  protected readonly rows = new Map<string, string>();

  get(sid: string, callback?: Callback): unknown {
    return this.read(() => parsed(this.rows.get(sid)), callback);
  }
  all(callback?: Callback): unknown {
    return this.read(
      () => Object.fromEntries([...this.rows].map(([sid, row]) => [sid, parsed(row)])),
      callback,
    );
  }
  length(callback?: Callback): unknown {
    return this.read(() => this.rows.size, callback);
  }
  ids(callback?: Callback): unknown {
    return this.read(() => [...this.rows.keys()], callback);
  }
  set(sid: string, session: object, callback?: Callback): unknown {
    return this.change(() => this.rows.set(sid, JSON.stringify(session)).size, callback);
  }
  touch(sid: string, session: object, callback?: Callback): unknown {
    return this.change(() => this.rows.has(sid) && 'cookie' in session, callback);
  }
  destroy(sid: string | string[], callback?: Callback): unknown {
    return this.change(() => [sid].flat().map((each) => this.rows.delete(each)), callback);
  }
  clear(callback?: Callback): unknown {
    return this.change(() => {
      this.rows.clear();
    }, callback);
  }

  protected read(work: () => unknown, callback?: Callback): unknown {
    const result = work();
    setImmediate(() => callback?.call(this, null, result));
    return 'queued';
  }
  protected change(work: () => unknown, callback?: Callback): unknown {
    const result = work();
    setImmediate(() => callback?.call(this, null, result, 'and more'));
    return 'queued';
  }
}

/** Calls back before it returns. */
export class SameTickStore extends PrototypeStore {
  protected override read(work: () => unknown, callback?: Callback): unknown {
    return callback?.(null, work());
  }
  protected override change(work: () => unknown, callback?: Callback): unknown {
    const result = work();
    return callback?.(null, result);
  }
}

/** Answers by promise, and knows no callbacks. */
export class PromiseStore {
  readonly #rows = new Map<string, string>();

  get(sid: string): Promise<unknown> {
    return Promise.resolve(parsed(this.#rows.get(sid)));
  }
  all(): Promise<unknown> {
    return Promise.resolve([...this.#rows].map(([id, row]) => ({ ...parsed(row), id })));
  }
  async set(sid: string, session: object): Promise<unknown> {
    await Promise.resolve();
    return this.#rows.set(sid, JSON.stringify(session)).size;
  }
  async destroy(sid: string | string[]): Promise<unknown> {
    await Promise.resolve();
    return [sid].flat().map((each) => this.#rows.delete(each));
  }
  async clear(): Promise<void> {
    await Promise.resolve();
    this.#rows.clear();
  }
}

/** Does not tell when it has changed something. */
export class SilentStore extends PrototypeStore {
  protected override change(work: () => unknown): void {
    work();
  }
}

/** All methods on the instance; its prototype knows none. */
export function instanceStore(): object {
  const store = new PrototypeStore();
  const names = ['get', 'all', 'length', 'ids', 'set', 'touch', 'destroy', 'clear'] as const;
  return Object.fromEntries(names.map((name) => [name, (store[name] as () => unknown).bind(store)]));
}

/** Anyone who calls its methods with another `this`, such as a Proxy, gets a TypeError. */
export class PrivateStore {
  readonly #sessions = new PrototypeStore();

  get(sid: string, callback?: Callback): unknown {
    return this.#sessions.get(sid, callback);
  }
  all(callback?: Callback): unknown {
    return this.#sessions.all(callback);
  }
  length(callback?: Callback): unknown {
    return this.#sessions.length(callback);
  }
  ids(callback?: Callback): unknown {
    return this.#sessions.ids(callback);
  }
  set(sid: string, session: object, callback?: Callback): unknown {
    return this.#sessions.set(sid, session, callback);
  }
  touch(sid: string, session: object, callback?: Callback): unknown {
    return this.#sessions.touch(sid, session, callback);
  }
  destroy(sid: string | string[], callback?: Callback): unknown {
    return this.#sessions.destroy(sid, callback);
  }
  clear(callback?: Callback): unknown {
    return this.#sessions.clear(callback);
  }
}

function parsed(row: string | undefined): object | undefined {
  return row === undefined ? undefined : (JSON.parse(row) as object);
}
