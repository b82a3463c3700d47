/**
 * Waits for a promise, but not for longer than this; the promise itself goes on. Neither keeps the process alive nor
 * leaves a timer behind.
 * @returns what the promise resolves to, or `late`
 */
export async function inTime<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<L>((resolve) => {
    timer = setTimeout(resolve, ms, late).unref();
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}
