/**
 * Does work under one signal that is aborted with any of several, or by a timer. `AbortSignal.any` would do, but in
 * Node 20 it keeps memory for as long as the longest-lived of its sources lives – here, the app.
 */
export async function withCombinedSignal<T>(
  sources: readonly (AbortSignal | undefined)[],
  timeoutMs: number | undefined,
  work: (combined: CombinedSignal) => Promise<T>,
): Promise<T> {
  const combined = new CombinedSignal(sources, timeoutMs);
  try {
    return await work(combined);
  } finally {
    combined.unlink();
  }
}

export class CombinedSignal {
  readonly #controller = new AbortController();
  readonly #sources: readonly AbortSignal[];
  readonly #abort = (): void => {
    this.#controller.abort();
  };
  readonly #timer: NodeJS.Timeout | undefined;
  /** Whether the timer was what aborted. */
  timedOut = false;

  constructor(sources: readonly (AbortSignal | undefined)[], timeoutMs?: number) {
    this.#sources = sources.filter((source) => source !== undefined);
    for (const source of this.#sources) source.addEventListener('abort', this.#abort, { once: true });
    if (this.#sources.some((source) => source.aborted)) this.#abort();
    if (timeoutMs !== undefined) {
      this.#timer = setTimeout(() => {
        this.timedOut = !this.signal.aborted;
        this.#abort();
      }, timeoutMs);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  unlink(): void {
    clearTimeout(this.#timer);
    for (const source of this.#sources) source.removeEventListener('abort', this.#abort);
  }
}

/** Waits for the promise, or until the signal is aborted; the promise itself goes on. */
export async function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(new DOMException('aborted', 'AbortError'));
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (stop) signal.removeEventListener('abort', stop);
  }
}
