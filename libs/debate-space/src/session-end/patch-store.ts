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
