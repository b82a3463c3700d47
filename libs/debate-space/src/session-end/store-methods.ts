type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Puts other methods in front of those of one store instance – not a Proxy, which stores with private fields do not
 * survive. `undo` takes them away, unless somebody else has put theirs in front of ours meanwhile.
 */
export class StoreMethods {
  readonly #store: object;
  readonly #undo: (() => void)[] = [];

  constructor(store: object) {
    this.#store = store;
  }

  /** The store's own method, or `undefined` when it has none of that name. */
  own(name: string): Method | undefined {
    const method: unknown = Reflect.get(this.#store, name);
    return typeof method === 'function' ? (method as Method) : undefined;
  }

  replace(name: string, replacement: (original: Method, args: unknown[]) => unknown): void {
    const original = this.own(name);
    if (!original) return;
    const before = Object.getOwnPropertyDescriptor(this.#store, name);
    const value = (...args: unknown[]): unknown => replacement(original, args);
    Object.defineProperty(this.#store, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: before?.enumerable ?? false,
    });
    this.#undo.push(() => {
      if (Reflect.get(this.#store, name) !== value) return;
      if (before) Object.defineProperty(this.#store, name, before);
      else Reflect.deleteProperty(this.#store, name);
    });
  }

  undo(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo();
  }
}
