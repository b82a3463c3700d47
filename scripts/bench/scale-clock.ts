// A clock that a simulation moves: timers, dates and the monotonic clock of this process follow it. Promises and immediates
// run as ever, between two moments.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Nothing that a timer begins takes more turns of the event loop, on a storage that answers synchronously. */
const TURNS = 24;

type Work = (...args: unknown[]) => void;

class SimulatedTimer {
  constructor(
    readonly work: () => void,
    public at: number,
    readonly everyMs: number | undefined,
  ) {}
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

export class SimulatedClock {
  /** Milliseconds since the beginning. */
  now = 0;
  readonly #timers = new Set<SimulatedTimer>();
  /** Signatures are made on another thread, in real time. */
  readonly #signatures = new Set<Promise<ArrayBuffer>>();

  /** From now on this process lives by this clock. */
  install(): void {
    const [date, monotonic] = [Date.now(), globalThis.performance.now()];
    const hrtime = process.hrtime.bigint();
    Date.now = () => Math.floor(date + this.now);
    globalThis.performance.now = () => monotonic + this.now;
    process.hrtime.bigint = () => hrtime + BigInt(Math.round(this.now * 1e6));
    const { subtle } = globalThis.crypto;
    const sign = subtle.sign.bind(subtle);
    subtle.sign = (...args) => {
      const signature = sign(...args);
      this.#signatures.add(signature);
      void signature.finally(() => this.#signatures.delete(signature));
      return signature;
    };
    const add = (work: () => void, ms: number, everyMs?: number): SimulatedTimer => {
      const timer = new SimulatedTimer(work, this.now + Math.max(1, ms || 0), everyMs);
      this.#timers.add(timer);
      return timer;
    };
    const remove = (timer: SimulatedTimer): boolean => this.#timers.delete(timer);
    Object.assign(globalThis, {
      setTimeout: (work: Work, ms: number, ...args: unknown[]) =>
        add(() => {
          work(...args);
        }, ms),
      setInterval: (work: Work, ms: number, ...args: unknown[]) =>
        add(
          () => {
            work(...args);
          },
          ms,
          Math.max(1, ms),
        ),
      clearTimeout: remove,
      clearInterval: remove,
    });
  }

  /** Lets everything happen up to the next timer, and moves there. */
  async step(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) {
      await nextTurn();
      if (this.#signatures.size === 0) continue;
      await Promise.all(this.#signatures);
      turn = 0;
    }
    let next: SimulatedTimer | undefined;
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer;
    if (!next) throw new Error('nothing is left to happen');
    this.now = Math.max(this.now, next.at);
    if (next.everyMs === undefined) this.#timers.delete(next);
    else next.at = this.now + next.everyMs;
    next.work();
  }
}
