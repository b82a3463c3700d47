import { StorageError, type StorageEngine } from 'nestjs-debate-space';

export function myStorage(): StorageEngine {
  const rows = new Map<string, string>();
  return {
    name: 'mine',
    guarantee: 'what is stored is lost when this process ends',
    durable: false, // true: commits outlive the process
    open: ({ namespace }) => {
      let isOpen = true;
      const at = (key: string): string => {
        if (!isOpen) throw new StorageError('The storage is closed');
        return `${namespace}/${key}`; // applications share the place, and no row
      };
      const sorted = (from: string, to: string): string[] =>
        [...rows.keys()].filter((key) => key >= at(from) && key < at(to)).sort(); // by bytes
      const start = at('').length;
      return {
        get: (keys) => keys.map((key) => rows.get(at(key))),
        range: (from, to, { limit, reverse = false }) => {
          at(from);
          const found = reverse ? sorted(from, to).reverse() : sorted(from, to);
          return found.slice(0, limit).map((key) => [key.slice(start), rows.get(key) ?? '']);
        },
        count: (family) => {
          at(family);
          return sorted(`${family}:`, `${family};`).length; // ';' follows ':'
        },
        commit: (checks, changes) => {
          for (const [key, value] of checks) if (rows.get(at(key)) !== value) return false;
          for (const [key, value] of changes) {
            if (value === undefined) rows.delete(at(key));
            else rows.set(at(key), value);
          }
          return true; // when it is as durable as this storage makes it
        },
        now: () => Math.floor(performance.timeOrigin + performance.now()), // never goes back
        close: () => {
          isOpen = false;
        },
      };
    },
  };
}
