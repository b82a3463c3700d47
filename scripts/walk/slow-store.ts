import session from 'express-session';

type Method = (...args: unknown[]) => unknown;

/** A store in memory, as over a network: each call takes a while before and after its effect. */
export function slowStore(
  random: () => number,
  mostMs: number,
  store = new session.MemoryStore(),
): session.MemoryStore {
  for (const name of ['get', 'set', 'destroy', 'touch'] as const) {
    if (typeof store[name] !== 'function') continue; // not every store can touch
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
