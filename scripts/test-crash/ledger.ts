import { EventEmitter } from 'node:events';
import type { ReceivedRequest } from 'debate-space-simulator';

/** What has arrived, against what was promised. */
interface Comparison {
  readonly delivered: number;
  readonly duplicates: number;
  /** Logged out of the debate space, and never here. */
  readonly invented: string[];
  /** Promised, and not arrived. */
  readonly missing: string[];
}

/** What was promised to whom, noted outside the apps; and what came of it. */
export class Ledger {
  /** When each logout was last requested, in ms. */
  readonly #asked = new Map<string, number>();
  readonly #acknowledged = new Set<string>();
  readonly #changes = new EventEmitter().setMaxListeners(0);
  /** Logouts that were answered with anything but 200. */
  refused = 0;
  slowestMs = 0;

  get asked(): number {
    return this.#asked.size;
  }

  get acknowledged(): number {
    return this.#acknowledged.size;
  }

  ask(uid: string): void {
    this.#asked.set(uid, Date.now());
  }

  acknowledge(uid: string, tookMs: number): void {
    this.#acknowledged.add(uid);
    this.slowestMs = Math.max(this.slowestMs, tookMs);
    this.#changes.emit('change');
  }

  /** Resolves when so many are acknowledged. */
  async reaches(count: number): Promise<void> {
    while (this.acknowledged < count) await new Promise((resolve) => this.#changes.once('change', resolve));
  }

  /**
   * How long after a moment the last delivery came of what had been requested before it: what a kill at that moment has
   * left, in ms.
   * @param received the requests that the service has seen
   */
  takenUpMs(received: readonly ReceivedRequest[], moment: number): number {
    const late = received
      .filter(
        ({ operation, accepted, uid = '' }) =>
          operation === 'logout' && accepted && (this.#asked.get(uid) ?? Infinity) < moment,
      )
      .map(({ at }) => at - moment);
    return late.reduce((most, ms) => Math.max(most, ms), 0);
  }

  /** @param received the uids of the logouts that the service has accepted, in order */
  compare(received: readonly string[]): Comparison {
    const times = new Map<string, number>();
    for (const uid of received) times.set(uid, (times.get(uid) ?? 0) + 1);
    return {
      delivered: times.size,
      duplicates: [...times.values()].filter((count) => count > 1).length,
      invented: [...times.keys()].filter((uid) => !this.#asked.has(uid)),
      missing: [...this.#acknowledged].filter((uid) => !times.has(uid)),
    };
  }
}
