import { describe, expect, it } from '@jest/globals';
import { patchStore, storeMethod, UnwatchableStoreError } from './store-calls.js';

class Store {
  readonly rows = new Map<string, object>();
  set(this: Store, sid: string, session: object): string {
    this.rows.set(sid, session);
    return `set ${sid}`;
  }
  destroy(this: Store, sid: string): string {
    this.rows.delete(sid);
    return `destroyed ${sid}`;
  }
}

/** @returns the store, the names of the calls that were seen, and how to take the wrappers away */
function patched(store: Store = new Store()): { store: Store; seen: string[]; remove: () => void } {
  const seen: string[] = [];
  const remove = patchStore(store, (name, next) => (self, args) => {
    seen.push(name);
    return next(self, args);
  });
  return { store, seen, remove };
}

describe('a patched store', () => {
  it('does what it did, and each call is seen', () => {
    const { store, seen } = patched();
    expect([store.set('s1', {}), store.destroy('s1')]).toEqual(['set s1', 'destroyed s1']);
    expect(seen).toEqual(['set', 'destroy']);
  });

  it('calls what an agent puts into its class later', () => {
    class Patched extends Store {}
    const { store, seen } = patched(new Patched());
    Patched.prototype.destroy = (sid) => `by the agent: ${sid}`;
    expect(store.destroy('s1')).toBe('by the agent: s1');
    expect(seen).toEqual(['destroy']);
  });

  it('passes calls of an object that is derived from it on unseen', () => {
    const { store, seen } = patched();
    const derived = Object.create(store) as Store;
    expect(derived.destroy('s1')).toBe('destroyed s1');
    expect(seen).toEqual([]);
  });

  it('has its own methods back when the wrappers are taken away', () => {
    const own = Object.assign(new Store(), { destroy: () => 'own' });
    const destroy: unknown = Reflect.get(own, 'destroy');
    patched(own).remove();
    expect([Reflect.get(own, 'destroy'), Object.hasOwn(own, 'set')]).toEqual([destroy, false]);
  });

  it('keeps a wrapper that the host has put in front since', () => {
    const { store, remove } = patched();
    const host = (): string => 'of the host';
    store.destroy = host;
    remove();
    expect(Reflect.get(store, 'destroy')).toBe(host);
  });

  it('tells its own method behind all wrappers', () => {
    const { store } = patched(patched().store);
    expect(storeMethod(store, 'destroy')).toBe(Reflect.get(Store.prototype, 'destroy'));
    expect(storeMethod(store, 'all')).toBeUndefined();
  });
});

it('a store that cannot be patched keeps all of its methods', () => {
  const store = Object.defineProperty(new Store(), 'destroy', { value: () => 'fixed', writable: false });
  expect(() => patched(store)).toThrow(UnwatchableStoreError);
  expect(Reflect.get(store, 'set')).toBe(Reflect.get(Store.prototype, 'set'));
});
