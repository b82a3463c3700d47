import type { StoreMethod } from './store-call.js';

/** Methods that have something in front of them. */
const METHODS = ['createSession', 'regenerate', 'get', 'touch', 'set', 'destroy', 'clear'] as const;

type MethodName = (typeof METHODS)[number];

/** What stands in front of a store: each gets the method behind it, and the caller's arguments. */
export type StoreLayer = Readonly<Record<MethodName, (next: StoreMethod, args: unknown[]) => unknown>>;

const LAYERS = Symbol('layers in front of a session store');

interface Layers {
  readonly set: Set<StoreLayer>;
  readonly originals: ReadonlyMap<string, StoreMethod>;
  /** The originals behind all layers: put together when a layer comes or goes, not on each call. */
  readonly composed: Map<MethodName, StoreMethod>;
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
  const layers = layersOf(store) ?? install(store);
  layers.set.add(layer);
  compose(layers);
  return () => {
    layers.set.delete(layer);
    compose(layers);
    if (layers.set.size > 0) return;
    for (const undo of layers.undo) undo();
    Reflect.deleteProperty(store, LAYERS);
  };
}

/** The store's own method of this name, behind all layers; `undefined` when it has none. */
export function storeMethod(store: object, name: string): StoreMethod | undefined {
  const method: unknown = layersOf(store)?.originals.get(name) ?? Reflect.get(store, name);
  return typeof method === 'function' ? (method as StoreMethod) : undefined;
}

function layersOf(store: object): Layers | undefined {
  return Reflect.get(store, LAYERS) as Layers | undefined;
}

function compose({ set, originals, composed }: Layers): void {
  for (const name of METHODS) {
    const original = originals.get(name);
    if (!original) continue;
    const behind = (next: StoreMethod, layer: StoreLayer): StoreMethod => (...args) => layer[name](next, args); // prettier-ignore
    composed.set(name, [...set].reduce(behind, original));
  }
}

function install(store: object): Layers {
  const originals = new Map<string, StoreMethod>();
  const composed = new Map<MethodName, StoreMethod>();
  const undo = METHODS.map((name) => {
    const original = storeMethod(store, name);
    if (!original) return () => undefined;
    originals.set(name, original);
    return replace(store, name, original, () => composed.get(name) ?? original);
  });
  const layers = { set: new Set<StoreLayer>(), originals, composed, undo };
  Object.defineProperty(store, LAYERS, { value: layers, configurable: true });
  return layers;
}

function replace(store: object, name: string, original: StoreMethod, current: () => StoreMethod): () => void {
  const before = Object.getOwnPropertyDescriptor(store, name);
  const value = (...args: unknown[]): unknown => current().apply(store, args);
  // Whoever asks how many arguments a method takes gets the same answer.
  Object.defineProperty(value, 'length', { value: original.length, configurable: true });
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
