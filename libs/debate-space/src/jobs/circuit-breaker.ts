const FIRST_PROBE_MS = 1_000;
const MIN_PROBE_MS = FIRST_PROBE_MS / 4;
const MAX_PROBE_MS = 30_000;
const MAX_FAILURES_IN_A_ROW = 5;
/** The breaker opens when most of this many last results are failures. */
const REMEMBERED = 20;

/**
 * Circuit breaker: `concurrency` requests while the service is up, one probe every 1–30 s while it is down. It opens after
 * five failures in a row, or when most of the last twenty requests failed; a success closes it.
 */
export class CircuitBreaker {
  /** When the next probe may be sent. */
  #probeAt = 0;
  #restsUntil = 0;
  #failuresInARow = 0;
  /** Of each of the last requests while closed: whether it failed. */
  #recent: boolean[] = [];
  /** Since the breaker opened; 0 while it is closed. */
  #failedProbes = 0;

  /**
   * @param onChange called when the breaker opens or closes, with the cause of the result; must not throw
   * @param maxFailures how many in a row open the breaker
   */
  constructor(
    private readonly maxConcurrency: number,
    private readonly onChange: (state: 'open' | 'closed', cause: string) => void,
    private readonly maxFailures = MAX_FAILURES_IN_A_ROW,
  ) {}

  /** Milliseconds until a request may be sent; 0 or less: now. */
  get waitMs(): number {
    return Math.max(this.#probeAt, this.#restsUntil) - performance.now();
  }

  get isOpen(): boolean {
    return this.#failedProbes > 0;
  }

  /** How many requests may run at the same time. */
  get concurrency(): number {
    return this.isOpen ? 1 : this.maxConcurrency;
  }

  /** Holds requests back for `ms`: the service is up, and wants fewer requests. */
  rest(ms: number): void {
    this.#restsUntil = Math.max(this.#restsUntil, performance.now() + ms);
  }

  /**
   * Records the result of a request.
   * @param cause the result in a word, such as `503` or `ECONNREFUSED`
   */
  record(result: 'success' | 'failure', cause: string): void {
    if (result === 'success') this.#succeeded(cause);
    else if (this.isOpen) this.#probeFailed();
    else this.#failed(cause);
  }

  #succeeded(cause: string): void {
    this.#failuresInARow = 0;
    if (!this.isOpen) {
      this.#remember(false);
      return;
    }
    this.#failedProbes = 0;
    this.#recent = [];
    this.#probeAt = 0;
    this.onChange('closed', cause);
  }

  #failed(cause: string): void {
    this.#failuresInARow += 1;
    this.#remember(true);
    const failures = this.#recent.filter(Boolean).length;
    if (this.#failuresInARow < this.maxFailures && failures <= REMEMBERED / 2) return;
    this.onChange('open', cause);
    this.#waitForProbe();
  }

  #probeFailed(): void {
    if (performance.now() < this.#probeAt) return; // sent before the breaker opened
    this.#waitForProbe();
  }

  #waitForProbe(): void {
    this.#failedProbes += 1;
    const ms = fullJitter(this.#failedProbes, FIRST_PROBE_MS, MAX_PROBE_MS);
    this.#probeAt = performance.now() + Math.max(MIN_PROBE_MS, ms);
  }

  #remember(failed: boolean): void {
    this.#recent.push(failed);
    if (this.#recent.length > REMEMBERED) this.#recent.shift();
  }
}

/**
 * Full jitter: a random time between 0 and `firstMs · 2^(failures − 1)`, at most `mostMs`.
 * @param failures how many attempts have failed so far, from 1
 * @param random a number from 0 to 1
 * @returns milliseconds
 */
export function fullJitter(
  failures: number,
  firstMs: number,
  mostMs: number,
  random = Math.random(),
): number {
  return Math.round(random * Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30)));
}
