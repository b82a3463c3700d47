import { isObject } from '../is-object.js';

const WRITES = ['touch', 'set', 'destroy', 'clear'] as const;
const READS = ['get', 'all', 'length', 'ids'] as const;
/**
 * Methods that end a session, or whose order with those is the host's. One that a store gets only after it is watched
 * stays unwatched: a method that is not there yet must not look as if it were.
 */
export const METHODS = ['createSession', 'regenerate', ...READS, ...WRITES] as const;

export type StoreMethodName = (typeof METHODS)[number];

export type StoreMethod = (this: unknown, ...args: unknown[]) => unknown;

/** A call that is passed on, with the `this` and the arguments of the caller: of fixed arity, because each request makes some. */
export type PassOn = (self: unknown, args: readonly unknown[]) => unknown;

/** Stands in front of a store's methods: gets what is behind it, and the `this` and arguments of the caller. */
export type StoreLayer = (
  name: StoreMethodName,
  next: PassOn,
  self: unknown,
  args: readonly unknown[],
) => unknown;

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

const REPLACEABLE = { writable: true, configurable: true };
const PATCH = Symbol('layers in front of a session store');

interface Patch {
  readonly layers: Set<StoreLayer>;
  /** The store's own method of a name as it is now: others may patch the store or its class later. */
  readonly original: (name: string) => unknown;
  /** The originals behind all layers: put together when a layer comes or goes, not on each call. */
  readonly composed: Map<StoreMethodName, { call: PassOn }>;
  readonly undo: () => void;
}

/**
 * Puts a layer in front of one store instance. Not a Proxy, which stores with private fields do not survive: an object
 * between the store and its prototype has the methods, so that the store's own properties stay as they are. Several
 * applications may watch the same store: each takes its own layer away, in any order, and with the last one the store
 * is as it was.
 * @returns how to take the layer away
 * @throws {@link UnwatchableStoreError} when the store cannot be changed
 */
export function patchStore(store: object, layer: StoreLayer): () => void {
  const patch = patchOf(store) ?? install(store);
  patch.layers.add(layer);
  compose(patch);
  return () => {
    patch.layers.delete(layer);
    compose(patch);
    if (patch.layers.size === 0) patch.undo();
  };
}

/** The store's own method of this name, behind all layers; `undefined` when it has none. */
export function storeMethod(store: object, name: string): StoreMethod | undefined {
  const patch = patchOf(store);
  const method: unknown = patch ? patch.original(name) : Reflect.get(store, name);
  return typeof method === 'function' ? (method as StoreMethod) : undefined;
}

/** Of this very store: one that is derived from a patched store inherits the patch, and has none. */
function patchOf(store: object): Patch | undefined {
  const between = Reflect.getPrototypeOf(store);
  return between && Object.hasOwn(between, PATCH) ? (Reflect.get(between, PATCH) as Patch) : undefined;
}

function compose({ layers, original, composed }: Patch): void {
  for (const [name, behindAll] of composed) {
    const own: PassOn = (self, args) => Reflect.apply(original(name) as StoreMethod, self, args);
    const behind =
      (next: PassOn, layer: StoreLayer): PassOn =>
      (self, args) =>
        layer(name, next, self, args);
    behindAll.call = [...layers].reduce(behind, own);
  }
}

function install(store: object): Patch {
  const prototype = Reflect.getPrototypeOf(store);
  const between = Object.create(prototype) as object;
  const own = new Map<string, PropertyDescriptor | undefined>(
    METHODS.map((name) => [name, Object.getOwnPropertyDescriptor(store, name)]),
  );
  const original = (name: string): unknown => {
    const before = own.get(name);
    if (!before) return prototype && Reflect.get(prototype, name, store);
    return 'value' in before ? before.value : before.get?.call(store);
  };
  const composed: Patch['composed'] = new Map();
  const replaced: (() => void)[] = [];
  const undo = (): void => {
    for (const restore of replaced) restore();
    if (Reflect.getPrototypeOf(store) === between) Object.setPrototypeOf(store, prototype);
  };
  const patch: Patch = { layers: new Set(), original, composed, undo };
  Object.defineProperty(between, PATCH, { value: patch });
  let part = 'prototype';
  try {
    const enumerables = new Set<string>();
    for (const name in store) enumerables.add(name);
    for (const name of METHODS) {
      const method = original(name);
      if (typeof method !== 'function') continue;
      const before = own.get(name);
      const call: PassOn = (self, args) => Reflect.apply(original(name) as StoreMethod, self, args);
      const behindAll = { call }; // until there is a layer
      composed.set(name, behindAll);
      const value: StoreMethod = function (...args) {
        // Whoever has our prototype is this store, also behind a Proxy; one that is derived from it has sessions of its own.
        // A method of the instance may be a function of a closure, and need no `this`.
        const isOfStore =
          this === store ||
          (isObject(this) ? Reflect.getPrototypeOf(this) === between : before !== undefined);
        return isOfStore
          ? behindAll.call(this, args)
          : Reflect.apply(original(name) as StoreMethod, this, args);
      };
      for (const key of ['name', 'length'])
        Object.defineProperty(value, key, { value: Reflect.get(method, key), configurable: true });
      part = `method ${name}`;
      const enumerable = enumerables.has(name);
      Object.defineProperty(before ? store : between, name, { ...REPLACEABLE, value, enumerable });
      replaced.push(() => {
        // Somebody else's method may stand in front of ours by now; with no layer left, ours only passes on.
        if (before && Object.getOwnPropertyDescriptor(store, name)?.value === value)
          Object.defineProperty(store, name, before);
      });
    }
    part = 'prototype';
    Object.setPrototypeOf(store, between);
  } catch (error) {
    undo();
    throw new UnwatchableStoreError(part, error);
  }
  return patch;
}
