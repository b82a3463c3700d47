export interface CombinedSignal {
  readonly signal: AbortSignal;
  /** Whether the timer was what aborted. */
  readonly timedOut: boolean;
}

/**
 * Does work under one signal that is aborted with any of several, or by a timer. `AbortSignal.any` would do, but in
 * Node 20 it keeps memory for as long as the longest-lived of its sources lives – here, the app.
 */
export async function withCombinedSignal<T>(
  sources: readonly (AbortSignal | undefined)[],
  timeoutMs: number | undefined,
  work: (combined: CombinedSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  const combined = { signal, timedOut: false };
  const abort = (): void => {
    controller.abort();
  };
  const expire = (): void => {
    combined.timedOut = !signal.aborted;
    abort();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  for (const source of sources) {
    source?.addEventListener('abort', abort, { once: true });
    if (source?.aborted) abort();
  }
  try {
    return await work(combined);
  } finally {
    clearTimeout(timer);
    for (const source of sources) source?.removeEventListener('abort', abort);
  }
}

/** Waits for the promise, or until the signal is aborted; the promise itself continues. */
export function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      reject(new DOMException('aborted', 'AbortError'));
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    void promise.then(resolve, reject).then(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}
