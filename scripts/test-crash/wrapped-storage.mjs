/** A storage with some of its methods replaced. */
export function wrapStorage(storage, methods) {
  return new Proxy(storage, {
    get: (target, key) => {
      if (Object.hasOwn(methods, key)) return methods[key];
      const own = Reflect.get(target, key, target);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}

/** An engine whose storages have some methods replaced. @param methodsOf the methods, for the storage that was opened */
export function wrapEngine(engine, methodsOf) {
  const open = async (context) => {
    const storage = await engine.open(context);
    return wrapStorage(storage, methodsOf(storage));
  };
  return { ...engine, open };
}
