export type StoreMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Methods that have something in front of them. */
const METHODS = ['createSession', 'regenerate', 'set', 'destroy', 'clear'] as const;

/** What stands in front of a store: each gets the method behind it, and the caller's arguments. */
export type StoreLayer = Readonly<
  Record<(typeof METHODS)[number], (next: StoreMethod, args: unknown[]) => unknown>
>;

const LAYERS = Symbol('layers in front of a session store');

interface Layers {
  readonly set: Set<StoreLayer>;
  readonly undo: readonly (() => void)[];
}

/**
 * Puts a layer in front of one store instance – not a Proxy, which stores with private fields do not survive. Several
 * applications may watch the same store: each takes its own layer away, in any order, and with the last one the store
 * gets its own methods back.
 * @returns how to take the layer away
 * @throws TypeError when the store cannot be changed
 */
export function addStoreLayer(store: object, layer: StoreLayer): () => void {
  const layers = (Reflect.get(store, LAYERS) as Layers | undefined) ?? install(store);
  layers.set.add(layer);
  return () => {
    layers.set.delete(layer);
    if (layers.set.size > 0) return;
    for (const undo of layers.undo) undo();
    Reflect.deleteProperty(store, LAYERS);
  };
}

/** The store's method of this name, or `undefined` when it has none. */
export function storeMethod(store: object, name: string): StoreMethod | undefined {
  const method: unknown = Reflect.get(store, name);
  return typeof method === 'function' ? (method as StoreMethod) : undefined;
}

function install(store: object): Layers {
  const set = new Set<StoreLayer>();
  const layers = { set, undo: METHODS.map((name) => replace(store, name, set)) };
  Object.defineProperty(store, LAYERS, { value: layers, configurable: true });
  return layers;
}

function replace(store: object, name: (typeof METHODS)[number], layers: ReadonlySet<StoreLayer>): () => void {
  const original = storeMethod(store, name);
  if (!original) return () => undefined;
  const before = Object.getOwnPropertyDescriptor(store, name);
  const value = (...args: unknown[]): unknown => {
    let method: StoreMethod = original;
    for (const layer of layers) {
      const next = method;
      method = (...passed) => layer[name](next, passed);
    }
    return method.apply(store, args);
  };
  Object.defineProperty(store, name, {
    value,
    writable: true,
    configurable: true,
    enumerable: before?.enumerable,
  });
  return () => {
    // Somebody else's method may stand in front of ours by now; with no layer left, ours only passes on.
    if (Reflect.get(store, name) !== value) return;
    if (before) Object.defineProperty(store, name, before);
    else Reflect.deleteProperty(store, name);
  };
}
