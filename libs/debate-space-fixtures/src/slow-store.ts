import session from 'express-session';

type Method = (...args: unknown[]) => unknown;

/** The memory store of express-session, as over a network: each call takes a while before and after its effect. */
export function slowStore(random: () => number, mostMs: number): session.MemoryStore {
  const store = new session.MemoryStore();
  for (const name of ['get', 'set', 'destroy', 'touch'] as const) {
    const own = (store[name] as Method).bind(store);
    const slow = (...args: unknown[]): void => {
      const [before, after] = [random() * mostMs, random() * mostMs];
      const callback = args.at(-1);
      const late = (...results: unknown[]): void => {
        if (typeof callback === 'function') setTimeout(callback as Method, after, ...results);
      };
      setTimeout(() => own(...(typeof callback === 'function' ? args.with(-1, late) : args)), before);
    };
    Object.defineProperty(store, name, { value: slow, configurable: true, writable: true });
  }
  return store;
}
