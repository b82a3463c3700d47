import { isObject } from './session-user.js';

/** Methods that end a session, or that each request calls. */
const WATCHED = ['createSession', 'regenerate', 'touch', 'set', 'destroy', 'clear'] as const;
/** Methods whose order with those is the host's: replaced only while a call waits. */
const READS = ['get', 'all', 'length', 'ids'] as const;

export type StoreMethodName = (typeof WATCHED | typeof READS)[number];

export type StoreMethod = (this: unknown, ...args: unknown[]) => unknown;

/** A call that is passed on, with the `this` and the arguments of the caller: of fixed arity, because each request makes some. */
export type PassOn = (self: unknown, args: ArrayLike<unknown>) => unknown;

/** Stands in front of a store's methods. @param next what is behind it @returns what is called in its place */
export type StoreLayer = (name: StoreMethodName, next: PassOn) => PassOn;

export interface StorePatch {
  /** While a call waits, reads have to pass the layer as well. */
  watchReads(isOn: boolean): void;
  /** Takes the layer away. */
  remove(): void;
}

/** A store that cannot be changed: it is frozen, say, or has a method that cannot be replaced. */
export class UnwatchableStoreError extends TypeError {
  override readonly name = 'TypeError';

  /** @param part what cannot be replaced, such as `method destroy` */
  constructor(
    readonly part: string,
    cause: unknown,
  ) {
    super(`a session store's ${part} cannot be replaced`, { cause });
  }
}

const PATCH = Symbol('layers in front of a session store');

/**
 * Puts a layer in front of one store instance. Not a Proxy, which stores with private fields do not survive: an object
 * between the store and its prototype has the methods, so that the store's own properties stay as they are. Several
 * applications may watch the same store: each takes its own layer away, in any order, and with the last one the store
 * is as it was. A method that a store gets only after it is watched stays unwatched.
 * @throws {@link UnwatchableStoreError} when the store cannot be changed
 */
export function patchStore(store: object, layer: StoreLayer): StorePatch {
  const patched = patchedStore(store) ?? new PatchedStore(store);
  patched.add(layer);
  return {
    watchReads: (isOn) => {
      patched.watchReads(layer, isOn);
    },
    remove: () => {
      patched.remove(layer);
    },
  };
}

/** The store's own method of this name, behind all layers; `undefined` when it has none. */
export function storeMethod(store: object, name: string): StoreMethod | undefined {
  const patched = patchedStore(store);
  const method: unknown = patched ? patched.original(name) : Reflect.get(store, name);
  return typeof method === 'function' ? (method as StoreMethod) : undefined;
}

/** Of this very store: one that is derived from a patched store inherits the patch, and has none. */
function patchedStore(store: object): PatchedStore | undefined {
  const between = Reflect.getPrototypeOf(store);
  return between && Object.hasOwn(between, PATCH) ? (Reflect.get(between, PATCH) as PatchedStore) : undefined;
}

class PatchedStore {
  readonly #store: object;
  readonly #prototype: object | null;
  readonly #between: object;
  /** The store's own properties that are replaced, by the names of the methods. */
  readonly #own = new Map<string, PropertyDescriptor>();
  readonly #layers = new Set<StoreLayer>();
  /** What is behind the methods: put together when a layer comes or goes, not on each call. */
  readonly #calls = new Map<StoreMethodName, { call: PassOn; readonly restore: () => void }>();
  readonly #readers = new Set<StoreLayer>();

  constructor(store: object) {
    this.#store = store;
    this.#prototype = Reflect.getPrototypeOf(store);
    this.#between = Object.create(this.#prototype) as object;
    let part = 'prototype';
    try {
      Object.defineProperty(this.#between, PATCH, { value: this });
      for (const name of WATCHED) {
        part = `method ${name}`;
        this.#replace(name);
      }
      part = 'prototype';
      Object.setPrototypeOf(store, this.#between);
    } catch (error) {
      this.#undo();
      throw new UnwatchableStoreError(part, error);
    }
  }

  /** As it is now: others may patch the store or its class later. */
  original(name: string): unknown {
    if (!this.#calls.has(name as StoreMethodName)) return Reflect.get(this.#store, name);
    return this.#behind(name, this.#own.get(name));
  }

  #behind(name: string, own: PropertyDescriptor | undefined): unknown {
    if (own) return 'value' in own ? own.value : own.get?.call(this.#store);
    return this.#prototype && Reflect.get(this.#prototype, name, this.#store);
  }

  add(layer: StoreLayer): void {
    this.#layers.add(layer);
    this.#compose();
  }

  remove(layer: StoreLayer): void {
    this.#layers.delete(layer);
    this.watchReads(layer, false);
    this.#compose();
    if (this.#layers.size === 0) this.#undo();
  }

  watchReads(layer: StoreLayer, isOn: boolean): void {
    const wasOn = this.#readers.size > 0;
    if (isOn) this.#readers.add(layer);
    else this.#readers.delete(layer);
    const isNeeded = this.#readers.size > 0;
    if (isNeeded && !wasOn) {
      for (const name of READS) this.#replace(name);
      this.#compose();
    }
    if (!isNeeded && wasOn) for (const name of READS) this.#restore(name);
  }

  #compose(): void {
    for (const [name, method] of this.#calls)
      method.call = [...this.#layers].reduce((next, layer) => layer(name, next), this.#ownCall(name));
  }

  #ownCall(name: StoreMethodName): PassOn {
    const own = this.#own.get(name);
    const plain = this.#prototype as Record<string, StoreMethod | undefined> | null;
    // What is found in the prototype as a property is read as one: this is on the way of each request.
    if (!own && plain && isPlain(plain, name))
      return (self, args) => pass(plain[name] ?? missing, self, args);
    return (self, args) => pass(this.#behind(name, own) as StoreMethod, self, args);
  }

  #replace(name: StoreMethodName): void {
    const [store, between] = [this.#store, this.#between];
    const method = this.original(name);
    if (typeof method !== 'function' || this.#calls.has(name)) return;
    const own = Object.getOwnPropertyDescriptor(store, name);
    if (own) this.#own.set(name, own);
    const behind = {
      call: this.#ownCall(name),
      restore: (): void => {
        // Somebody else's method may stand in front of ours by now; with no layer left, ours only passes on.
        if (!own) Reflect.deleteProperty(between, name);
        else if (Object.getOwnPropertyDescriptor(store, name)?.value === value)
          Object.defineProperty(store, name, own);
      },
    };
    // Not `original`: somebody's wrapper may still call this when the layers are gone.
    const original = (): unknown => this.#behind(name, own);
    // Whoever has our prototype is this store, also behind a Proxy; one that is derived from it has sessions of its own.
    // A method of the instance may be a function of a closure, and need no `this`.
    const isOfStore = (self: unknown): boolean =>
      isObject(self) ? Reflect.getPrototypeOf(self) === between : own !== undefined;
    const value = function (this: unknown): unknown {
      // eslint-disable-next-line prefer-rest-params -- each request makes some of these calls, and an array costs more
      const args = arguments;
      if (this === store || isOfStore(this)) return behind.call(this, args);
      return Reflect.apply(original() as StoreMethod, this, args);
    };
    for (const key of ['name', 'length'])
      Object.defineProperty(value, key, { value: Reflect.get(method, key), configurable: true });
    const enumerable = own ? own.enumerable : isEnumerable(store, name);
    const attributes = { writable: true, configurable: true, enumerable };
    this.#calls.set(name, behind);
    try {
      Object.defineProperty(own ? store : between, name, { ...attributes, value });
    } catch (error) {
      this.#forget(name);
      throw error;
    }
  }

  #restore(name: StoreMethodName): void {
    this.#calls.get(name)?.restore();
    this.#forget(name);
  }

  #forget(name: StoreMethodName): void {
    this.#calls.delete(name);
    this.#own.delete(name);
  }

  #undo(): void {
    for (const name of [...this.#calls.keys()]) this.#restore(name);
    if (Reflect.getPrototypeOf(this.#store) === this.#between)
      Object.setPrototypeOf(this.#store, this.#prototype);
  }
}

/** `Reflect.apply`, for less where there are as many arguments as each request has. */
function pass(method: StoreMethod, self: unknown, args: ArrayLike<unknown>): unknown {
  if (args.length === 2) return method.call(self, args[0], args[1]);
  if (args.length === 3) return method.call(self, args[0], args[1], args[2]);
  return Reflect.apply(method, self, args) as unknown;
}

/** Whether `prototype[name]` needs no `this`: it is no accessor. */
function isPlain(prototype: object, name: string): boolean {
  for (let place: object | null = prototype; place; place = Reflect.getPrototypeOf(place)) {
    const found = Object.getOwnPropertyDescriptor(place, name);
    if (found) return 'value' in found;
  }
  return false;
}

function isEnumerable(store: object, name: string): boolean {
  for (const each in store) if (each === name) return true;
  return false;
}

function missing(): never {
  throw new TypeError('the store has lost a method');
}
