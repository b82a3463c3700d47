import { orAborted } from '../linked-signal.js';

/** The same items until the signal is aborted – also while the next one is waited for; then the loop rejects. */
export async function* untilAborted<T>(
  items: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  if (!signal) {
    yield* items;
    return;
  }
  const iterator = items[Symbol.asyncIterator]();
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await orAborted(iterator.next(), signal);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not waited for: what hangs would hang here, too.
    iterator.return?.().catch(() => undefined);
  }
}
