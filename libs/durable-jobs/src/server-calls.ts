import { performance } from 'node:perf_hooks';
import { StorageError } from './storage.js';
import { timeoutOrThrow } from './with-timeout.js';

/**
 * Calls through a connection of the host's, which may keep commands back for as long as the server is away: each call
 * has a time limit of our own. Errors name a cause and nothing more, because those of clients repeat what was sent.
 */
export class ServerCalls {
  readonly #server: string;
  readonly #hint: string;
  readonly #timeoutMs: number;
  readonly #open = new Set<Promise<unknown>>();
  #isClosed = false;

  /**
   * @param server `Redis`, for messages
   * @param hint what to check when a call fails
   * @param timeoutMs how long one call may take
   */
  constructor(server: string, hint: string, timeoutMs = 5_000) {
    this.#server = server;
    this.#hint = hint;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * @param work may consist of several commands; it must send no more of them when `isLate()`
   * @throws {@link StorageError} when `work` fails or takes too long, or after {@link close}
   */
  async run<T>(work: (isLate: () => boolean) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StorageError('The storage is closed');
    const end = performance.now() + this.#timeoutMs;
    const call = timeoutOrThrow(
      work(() => performance.now() >= end),
      this.#timeoutMs,
    );
    this.#open.add(call);
    try {
      return await call;
    } catch (error) {
      if (error instanceof StorageError) throw error;
      throw new StorageError(`${this.#server} failed (${reasonOf(error)})`, this.#hint);
    } finally {
      this.#open.delete(call);
    }
  }

  /** Waits for open calls, which takes no longer than their time limit. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#open);
  }
}

/** Codes that an operator would have to look up. */
const MEANINGS: Readonly<Record<string, string>> = {
  OOM: 'out of memory',
  READONLY: 'read-only',
  '25006': 'read-only',
  '42P01': 'no such table',
  '53100': 'disk full',
};

/** `ECONNREFUSED`, `WRONGPASS`, `42P01: no such table`: a message of a client may hold what was sent, with personal data in it. */
export function reasonOf(error: unknown): string {
  const reason = codeOf(error);
  const meaning = MEANINGS[reason];
  return meaning === undefined ? reason : `${reason}: ${meaning}`;
}

function codeOf(error: unknown): string {
  const { code, message, name } = Object(error) as Partial<Record<'code' | 'message' | 'name', unknown>>;
  if (typeof code === 'string') return code;
  const word = /^[A-Z]{2,}\b/.exec(String(message))?.[0];
  return word ?? (typeof name === 'string' && name !== 'Error' ? name : 'no answer');
}

const REFRESH_MS = 30_000;
const FIRST_SAMPLES = 3;

/**
 * The clock of a server, read without a round trip: its distance from this process's monotonic clock, so that setting
 * the clock of this machine changes nothing. It never goes back; while it is ahead of the server it runs at half speed.
 */
export class ServerClock {
  readonly #read: () => Promise<number>;
  /** Server time minus `performance.now()`, in ms. */
  #offset: number | undefined;
  #now = 0;
  #readAt = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** @param read returns the time of the server, in ms since 1970 */
  constructor(read: () => Promise<number>) {
    this.#read = read;
  }

  /** Measures the offset, and again every 30 s. Rejects with what `read` rejects with. */
  async start(contained: (work: () => void) => void): Promise<void> {
    for (let sample = 0; sample < FIRST_SAMPLES; sample += 1) await this.measure();
    const refresh = (): void => {
      this.measure().catch(() => undefined); // the last offset stays good for hours
    };
    this.#timer = setInterval(contained, REFRESH_MS, refresh).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * The server read its clock at some moment between question and answer. An offset that agrees with that stays as it
   * is, so that a slow answer cannot spoil the result of a fast one.
   */
  async measure(): Promise<void> {
    const asked = performance.now();
    const server = await this.#read();
    const answered = performance.now();
    if (!Number.isFinite(server)) throw new TypeError('not a time');
    const offset = this.#offset ?? server - (asked + answered) / 2;
    this.#offset = Math.min(Math.max(offset, server - answered), server - asked);
  }

  /** In whole ms since 1970. */
  now(): number {
    const machine = performance.now();
    const server = machine + (this.#offset ?? 0);
    // Fake timers of a test runner begin at 0.
    this.#now = Math.max(server, this.#now + Math.max(0, machine - this.#readAt) / 2);
    this.#readAt = machine;
    return Math.floor(this.#now);
  }
}
