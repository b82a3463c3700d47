import { memoryStorage, type DebateSpaceStorage, type StorageEngine } from 'nestjs-debate-space';

/** A storage in memory with some of its methods replaced. @param replaced is given the methods as they were */
export function storageWith(
  replaced: (memory: DebateSpaceStorage) => Partial<DebateSpaceStorage>,
): StorageEngine {
  const engine = memoryStorage();
  return {
    ...engine,
    open: async (context) => {
      const memory = await engine.open(context);
      const names = ['get', 'range', 'count', 'commit', 'now', 'close'] as const;
      const own = Object.fromEntries(names.map((name) => [name, memory[name].bind(memory)]));
      return { ...(own as unknown as DebateSpaceStorage), ...replaced(memory) };
    },
  };
}
