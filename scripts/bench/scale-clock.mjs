// A clock that a simulation moves: timers, dates and the monotonic clock of this process follow it. Promises and immediates
// run as ever, between two moments.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Nothing that a timer begins takes more turns of the event loop, on a storage that answers synchronously. */
const TURNS = 24;

class SimulatedTimer {
  constructor(work, at, everyMs) {
    Object.assign(this, { work, at, everyMs });
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  hasRef() {
    return true;
  }
}

export class SimulatedClock {
  /** Milliseconds since the beginning. */
  now = 0;
  #timers = new Set();

  /** From now on this process lives by this clock. */
  install() {
    const [date, monotonic] = [Date.now(), globalThis.performance.now()];
    const hrtime = process.hrtime.bigint();
    Date.now = () => Math.floor(date + this.now);
    globalThis.performance.now = () => monotonic + this.now;
    process.hrtime.bigint = () => hrtime + BigInt(Math.round(this.now * 1e6));
    const add = (work, ms, everyMs) => {
      const timer = new SimulatedTimer(work, this.now + Math.max(1, ms || 0), everyMs);
      this.#timers.add(timer);
      return timer;
    };
    const remove = (timer) => this.#timers.delete(timer);
    Object.assign(globalThis, {
      setTimeout: (work, ms, ...args) => add(() => work(...args), ms),
      setInterval: (work, ms, ...args) => add(() => work(...args), ms, Math.max(1, ms)),
      clearTimeout: remove,
      clearInterval: remove,
    });
  }

  /** Lets everything happen up to the next timer, and moves there. */
  async step() {
    for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
    let next;
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer;
    if (!next) throw new Error('nothing is left to happen');
    this.now = Math.max(this.now, next.at);
    if (next.everyMs === undefined) this.#timers.delete(next);
    else next.at = this.now + next.everyMs;
    next.work();
  }
}
