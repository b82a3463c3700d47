import { setTimeout as pause } from 'node:timers/promises';
import type { Containment } from '../containment.js';
import type { SessionRecord } from '../debate-space.options.js';
import { timeoutOrThrow, withTimeout } from '../with-timeout.js';
import type { EndRecorder } from './end-recorder.js';
import type { SessionIndexing } from './indexed-sessions.js';
import { nextLook } from './session-expiry.js';
import type { ExpiredSession, SessionRemoval } from './session-registry.js';

interface ExpirySweepOptions extends Omit<SessionIndexing, 'sweepMs'> {
  readonly recorder: EndRecorder;
  /** The session as the stores have it now, if its user is still this one. Rejects when they cannot be read. */
  readonly lookUp: (sid: string, uid: string) => Promise<SessionRecord | undefined>;
  readonly everyMs: number;
  readonly containment: Containment;
}

const AT_ONCE = 50;
/** So long nobody else looks at what this process has claimed. */
const LEASE_MS = 60_000;
/** Neither a store nor a registry that does not answer may stop the sweep. */
const ANSWER_WITHIN_MS = 5_000;
/** A look that is under way may end; whatever is left has been claimed, and will be again. */
const STOP_WITHIN_MS = 1_000;

/**
 * Finds users whose session ran out. Of all instances, one claims each session whose time has come, looks whether it is
 * really gone, and tells of it.
 */
export class ExpirySweep {
  readonly #options: ExpirySweepOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ExpirySweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await withTimeout(this.#running ?? Promise.resolve(), STOP_WITHIN_MS, undefined);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.sweep();
      await pause(this.#options.everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Looks once at every session whose time has come. Never rejects. */
  async sweep(): Promise<void> {
    const { registry, containment } = this.#options;
    let claimed: readonly ExpiredSession[];
    do {
      try {
        claimed = await timeoutOrThrow(registry.claimExpired(AT_ONCE, LEASE_MS), ANSWER_WITHIN_MS);
      } catch (error) {
        containment.report('session registry', error);
        return;
      }
      // What fails is claimed again when its lease has run out.
      const looked = await Promise.allSettled(claimed.map((session) => this.#look(session)));
      for (const look of looked)
        if (look.status === 'rejected') containment.report('session.expiry', look.reason);
    } while (claimed.length === AT_ONCE && !this.#stopping.signal.aborted);
  }

  async #look(session: ExpiredSession): Promise<void> {
    const { registry, seal, lookUp, everyMs } = this.#options;
    const opened = seal.open(session);
    if (!opened) {
      await timeoutOrThrow(registry.remove(session), ANSWER_WITHIN_MS); // of another storage key: nobody can say whether it still lives
      return;
    }
    const { sid, uid } = opened;
    const alive = await timeoutOrThrow(lookUp(sid, uid), ANSWER_WITHIN_MS);
    if (!alive) {
      await this.#tell(sid, uid);
      return;
    }
    const renewed = { ...seal.seal(sid, uid), expiresAt: nextLook(alive, Date.now(), everyMs) };
    await timeoutOrThrow(registry.renew(renewed, seal.formerNames(sid, uid)), ANSWER_WITHIN_MS);
  }

  async #tell(sid: string, uid: string): Promise<void> {
    const { registry, seal, recorder, lastOnly, containment } = this.#options;
    const held = await recorder.hold(uid, 'expired', sid);
    const remove = (): Promise<SessionRemoval> =>
      timeoutOrThrow(registry.remove(seal.name(sid, uid), seal.formerNames(sid, uid)), ANSWER_WITHIN_MS);
    // Without an answer nobody knows whether it was removed, and so whether anybody will claim it again: it is told.
    const removal = await remove().catch((error: unknown) => {
      containment.report('session registry', error);
      return remove().then(
        ({ others }) => ({ removed: true, others }),
        () => ({ removed: true, others: false }),
      );
    });
    await (removal.removed && !(lastOnly && removal.others) ? held?.release([]) : held?.cancel());
  }
}
