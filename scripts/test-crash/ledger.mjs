import { EventEmitter } from 'node:events';

/** What was promised to whom, noted outside the apps; and what came of it. */
export class Ledger {
  #asked = new Set();
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
    this.#asked.add(uid);
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

  /** @param received the uids of the logouts that the service has accepted, in order */
  compare(received) {
    const times = new Map();
    for (const uid of received) times.set(uid, (times.get(uid) ?? 0) + 1);
    return {
      delivered: times.size,
      duplicates: [...times.values()].filter((count) => count > 1).length,
      /** Logged out over there, and never here. */
      invented: [...times.keys()].filter((uid) => !this.#asked.has(uid)),
      /** Promised, and not arrived. */
      missing: [...this.#acknowledged].filter((uid) => !times.has(uid)),
    };
  }
}
