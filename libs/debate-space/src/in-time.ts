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

/**
 * The same for whoever cannot go on without an answer.
 * @returns what the promise resolves to; rejects when it is late
 */
export async function answered<T>(answer: T | PromiseLike<T>, ms: number): Promise<T> {
  const early = await inTime(
    Promise.resolve(answer).then((value) => ({ value })),
    ms,
    undefined,
  );
  if (!early) throw new Error('no answer in time');
  return early.value;
}
