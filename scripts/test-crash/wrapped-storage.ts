import type { DebateSpaceStorage, StorageEngine } from 'nestjs-debate-space';

/** What takes the place of methods of a storage. */
export type Methods = Partial<DebateSpaceStorage>;
export type Commit = DebateSpaceStorage['commit'];

/** A storage with some of its methods replaced. */
export function wrapStorage<Storage extends DebateSpaceStorage>(storage: Storage, methods: Methods): Storage {
  return new Proxy(storage, {
    get: (target, key): unknown => {
      if (Object.hasOwn(methods, key)) return methods[key as keyof Methods];
      const own: unknown = Reflect.get(target, key, target);
      return typeof own === 'function' ? (own.bind(target) as unknown) : own;
    },
  });
}

/** An engine whose storages have some methods replaced. @param methodsOf the methods, for the storage that was opened */
export function wrapEngine(
  engine: StorageEngine,
  methodsOf: (storage: DebateSpaceStorage) => Methods,
): StorageEngine {
  const open: StorageEngine['open'] = async (context) => {
    const storage = await engine.open(context);
    return wrapStorage(storage, methodsOf(storage));
  };
  return { ...engine, open };
}
