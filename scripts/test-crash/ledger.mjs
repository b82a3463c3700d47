import { EventEmitter } from 'node:events';

/** What was promised to whom, noted outside the apps; and what came of it. */
export class Ledger {
  /** When each logout was last requested, in ms. */
  #asked = new Map();
  #acknowledged = new Set();
  #changes = new EventEmitter().setMaxListeners(0);
  /** Logouts that were answered with anything but 200. */
  refused = 0;
  slowestMs = 0;

  get asked() {
    return this.#asked.size;
  }

  get acknowledged() {
    return this.#acknowledged.size;
  }

  ask(uid) {
    this.#asked.set(uid, Date.now());
  }

  acknowledge(uid, tookMs) {
    this.#acknowledged.add(uid);
    this.slowestMs = Math.max(this.slowestMs, tookMs);
    this.#changes.emit('change');
  }

  /** Resolves when so many are acknowledged. */
  async reaches(count, signal) {
    while (this.acknowledged < count && !signal?.aborted)
      await new Promise((resolve) => this.#changes.once('change', resolve));
  }

  /**
   * How long after a moment the last delivery came of what had been requested before it: what a kill at that moment has
   * left, in ms.
   * @param received the requests that the service has seen
   */
  takenUpMs(received, moment) {
    const late = received
      .filter(
        ({ operation, accepted, uid }) => operation === 'logout' && accepted && this.#asked.get(uid) < moment,
      )
      .map(({ at }) => at - moment);
    return late.reduce((most, ms) => Math.max(most, ms), 0);
  }

  /** @param received the uids of the logouts that the service has accepted, in order */
  compare(received) {
    const times = new Map();
    for (const uid of received) times.set(uid, (times.get(uid) ?? 0) + 1);
    return {
      delivered: times.size,
      duplicates: [...times.values()].filter((count) => count > 1).length,
      /** Logged out of the debate space, and never here. */
      invented: [...times.keys()].filter((uid) => !this.#asked.has(uid)),
      /** Promised, and not arrived. */
      missing: [...this.#acknowledged].filter((uid) => !times.has(uid)),
    };
  }
}
