import { setTimeout as pause } from 'node:timers/promises';
import type { SessionRecord } from '../debate-space.options.js';
import { timeoutOrThrow, withTimeout } from '../with-timeout.js';
import type { DetectorContext } from './detector-context.js';
import type { SessionIndexing } from './registry-writer.js';
import { nextLook } from './session-expiry.js';
import type { SessionRemoval, UserSession } from './session-registry.js';

/** The session as the stores have it now, if its user is still this one. Rejects when they cannot be read. */
export type LookUp = (session: UserSession) => Promise<SessionRecord | undefined>;

const BATCH = 50;
/** So long nobody else looks at what this process has claimed. */
const LEASE_MS = 60_000;
/** Neither a store nor a registry that does not answer may stop the sweep. */
const ANSWER_WITHIN_MS = 5_000;
/** A look that is under way may end; whatever is left has been claimed, and will be again. */
const STOP_WITHIN_MS = 1_000;

/**
 * Finds users whose session has expired. Of all instances, one claims each session whose time has come, looks whether it
 * is really gone, and reports it.
 */
export class ExpirySweep {
  readonly #indexing: SessionIndexing;
  readonly #everyMs: number;
  readonly #context: Pick<DetectorContext, 'recorder' | 'containment' | 'shutdownSignal'>;
  readonly #lookUp: LookUp;
  #running: Promise<void> | undefined;

  constructor(
    indexing: SessionIndexing,
    everyMs: number,
    context: Pick<DetectorContext, 'recorder' | 'containment' | 'shutdownSignal'>,
    lookUp: LookUp,
  ) {
    this.#indexing = indexing;
    this.#everyMs = everyMs;
    this.#context = context;
    this.#lookUp = lookUp;
  }

  /** Sweeps until the app shuts down. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** To be awaited after the shutdown has begun. */
  async stopped(): Promise<void> {
    await withTimeout(this.#running ?? Promise.resolve(), STOP_WITHIN_MS, undefined);
  }

  async #run(): Promise<void> {
    const signal = this.#context.shutdownSignal;
    while (!signal.aborted) {
      await this.sweep();
      await pause(this.#everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Looks once at every session whose time has come. Never rejects. */
  async sweep(): Promise<void> {
    const { containment, shutdownSignal } = this.#context;
    let claimed: readonly UserSession[];
    do {
      const claim = () => inTime(this.#indexing.registry.claimExpired(BATCH, LEASE_MS));
      claimed = await containment.run<Promise<readonly UserSession[]>>('session registry', claim, []);
      // What fails is claimed again when its lease has run out.
      const look = (session: UserSession) =>
        containment.run<Promise<void>>('session.expiry', () => this.#look(session), undefined);
      await Promise.all(claimed.map(look));
    } while (claimed.length > 0 && !shutdownSignal.aborted);
  }

  async #look(session: UserSession): Promise<void> {
    const alive = await inTime(this.#lookUp(session));
    if (!alive) return this.#report(session);
    await inTime(this.#indexing.registry.renew(session, nextLook(alive, Date.now(), this.#everyMs)));
  }

  async #report(session: UserSession): Promise<void> {
    const { registry, lastOnly } = this.#indexing;
    const held = await this.#context.recorder.hold(session.uid, 'expired', session.sid);
    const remove = (): Promise<SessionRemoval> => inTime(registry.remove(session));
    // Without an answer nobody knows whether it was removed, and so whether anybody will claim it again: it is reported.
    const removal = await remove().catch(async (error: unknown) => {
      this.#context.containment.report('session registry', error);
      const { others } = await remove().catch(() => ({ others: false }));
      return { removed: true, others };
    });
    await (removal.removed && !(lastOnly && removal.others) ? held?.release([]) : held?.cancel());
  }
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return timeoutOrThrow(answer, ANSWER_WITHIN_MS);
}
