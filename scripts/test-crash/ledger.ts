import { EventEmitter } from 'node:events';
import type { ReceivedRequest } from 'debate-space-simulator';
import type { Sessions } from './session-store.js';

/** The logouts that have arrived, against what the browsers know and what the session store says. */
interface Comparison {
  readonly delivered: number;
  readonly duplicates: number;
  /** Reported to the service while a session of theirs lived. */
  readonly invented: string[];
  /** Logged out with an answer, and not arrived. */
  readonly missing: string[];
  /** A request ended their session, and no answer told the browser so. */
  readonly unanswered: string[];
  /** Those of them that have not arrived. */
  readonly unansweredMissing: string[];
}

/** The requests of the browsers and their answers, noted outside the apps; and what came of them. */
export class Ledger {
  /** When each logout was last requested, in ms. */
  readonly #asked = new Map<string, number>();
  /** When each logout was answered, in ms. */
  readonly #acknowledged = new Map<string, number>();
  /** Who logged in again as the same user: an app that dies meanwhile may leave them without a session. */
  readonly #renewed = new Map<string, boolean>();
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

  /** @param isAnswered whether the browser has the new session */
  renew(uid: string, isAnswered: boolean): void {
    this.#renewed.set(uid, isAnswered);
  }

  /** Whether the app died while the user logged in again: the browser has the old session only, which is gone. */
  isCutOff(uid: string): boolean {
    return this.#renewed.get(uid) === false;
  }

  acknowledge(uid: string, tookMs: number): void {
    this.#acknowledged.set(uid, Date.now());
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
    const late = logoutsIn(received)
      .filter(({ uid = '' }) => (this.#asked.get(uid) ?? Infinity) < moment)
      .map(({ at }) => at - moment);
    return late.reduce((most, ms) => Math.max(most, ms), 0);
  }

  /** How long after its answer each logout arrived, in ms. */
  deliveryTimes(received: readonly ReceivedRequest[]): number[] {
    return logoutsIn(received).flatMap(({ uid = '', at }) => {
      const answeredAt = this.#acknowledged.get(uid);
      return answeredAt === undefined ? [] : [at - answeredAt];
    });
  }

  /** @param received the requests that the service has seen */
  compare(received: readonly ReceivedRequest[], sessions: Sessions): Comparison {
    const times = new Map<string, number>();
    const invented = new Set<string>();
    for (const { uid = '', at } of logoutsIn(received)) {
      times.set(uid, (times.get(uid) ?? 0) + 1);
      const livedUntil = sessions.livesUntil(uid) ?? (this.#asked.has(uid) ? -Infinity : Infinity);
      if (at < livedUntil) invented.add(uid);
    }
    const isMissing = (uid: string): boolean => !times.has(uid);
    const unanswered = [...new Set([...this.#asked.keys(), ...this.#renewed.keys()])].filter(
      (uid) => !this.#acknowledged.has(uid) && sessions.wasDestroyed(uid),
    );
    return {
      delivered: times.size,
      duplicates: [...times.values()].filter((count) => count > 1).length,
      invented: [...invented],
      missing: [...this.#acknowledged.keys()].filter(isMissing),
      unanswered,
      unansweredMissing: unanswered.filter(isMissing),
    };
  }
}

/** The logouts that the service has accepted, in order. */
function logoutsIn(received: readonly ReceivedRequest[]): readonly ReceivedRequest[] {
  return received.filter(({ operation, accepted }) => operation === 'logout' && accepted);
}
