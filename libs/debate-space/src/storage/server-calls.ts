import { performance } from 'node:perf_hooks';
import { StorageError } from '../errors.js';
import { timeoutOrThrow } from '../with-timeout.js';

export interface ServerCallsOptions {
  /** `Redis`, for messages. */
  readonly server: string;
  /** What to check when a call fails. */
  readonly hint: string;
  /** How long one call may take, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

/**
 * Calls through a connection of the host's, which may keep commands back for as long as the server is away: each call
 * has a time limit of our own. Errors name a cause and nothing more, because those of clients repeat what was sent.
 */
export class ServerCalls {
  readonly #options: ServerCallsOptions;
  readonly #timeoutMs: number;
  readonly #open = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(options: ServerCallsOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? 5_000;
  }

  /**
   * @param work may consist of several commands; it must send no more of them when `isLate()`
   * @throws {@link StorageError} when `work` fails or takes too long, or after {@link close}
   */
  async run<T>(work: (isLate: () => boolean) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StorageError('The storage is closed.');
    const end = performance.now() + this.#timeoutMs;
    const call = timeoutOrThrow(
      work(() => performance.now() >= end),
      this.#timeoutMs,
    );
    this.#open.add(call);
    try {
      return await call;
    } catch (error) {
      throw error instanceof StorageError ? error : this.#failure(error);
    } finally {
      this.#open.delete(call);
    }
  }

  /** Waits for open calls, which takes no longer than their time limit. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#open);
  }

  #failure(error: unknown): StorageError {
    const { server, hint } = this.#options;
    return new StorageError(`${server} failed (${reasonOf(error)}). hint: ${hint}`);
  }
}

/** `ECONNREFUSED`, `WRONGPASS`, `40P01`: a message of a client may hold what was sent, with a uid in it. */
export function reasonOf(error: unknown): string {
  const { code, message, name } = Object(error) as Partial<Record<'code' | 'message' | 'name', unknown>>;
  if (typeof code === 'string') return code;
  const word = /^[A-Z]{2,}\b/.exec(String(message))?.[0];
  return word ?? (typeof name === 'string' && name !== 'Error' ? name : 'no answer');
}
