/** Runs work, so many at the same time. */
export type Semaphore = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Runs `count` works at the same time; the others wait, in order. */
export function semaphore(count: number): Semaphore {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
