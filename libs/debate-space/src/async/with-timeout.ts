/**
 * Waits for a promise, but no longer than `ms`; the promise itself goes on. Keeps neither the process alive nor a timer.
 * @returns what the promise resolves to, or `late`
 */
export async function withTimeout<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
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

/** Like {@link withTimeout}, but rejects after `ms`. */
export async function timeoutOrThrow<T>(answer: T | PromiseLike<T>, ms: number): Promise<T> {
  const early = await withTimeout(
    Promise.resolve(answer).then((value) => ({ value })),
    ms,
    undefined,
  );
  if (!early) throw new Error('no answer in time');
  return early.value;
}
