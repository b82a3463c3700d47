import { setTimeout as pause } from 'node:timers/promises';
import type { EndReason } from '../debate-space-event.js';
import type { EndRecorder, HeldEnd } from './end-recorder.js';
import type { SessionRequest } from './session-request.js';
import { settled } from './settled.js';
import type { StoreOutcome } from './store-call.js';

/** A session that may be ending for its user. Calls that would end the same one join in. */
export interface Ending {
  /** Absent when the store does not tell the ids of the sessions it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  /** The requests that are ending it, as far as they are known. */
  readonly actors: Set<SessionRequest>;
  readonly calls: Promise<StoreOutcome>[];
  readonly held: HeldEnd | undefined | Promise<HeldEnd | undefined>;
}

export interface EndingsOptions {
  readonly recorder: EndRecorder;
  /** The user of a session, as the store has it now. */
  readonly ask: (sid: string) => Promise<string | undefined>;
  readonly graceMs: number;
  /** Aborted when the app shuts down: verdicts then fall at once. */
  readonly hurry: AbortSignal;
}

const ASK_TIMEOUT_MS = 5_000;

/**
 * The verdict on each ending (session-endings.md, rules 2 to 5): it falls when the store is done and the response is
 * closed, and asks the store whether the same browser still gets the same user.
 */
export class Endings {
  readonly #options: EndingsOptions;
  readonly #undecided = new Map<string, Ending>();
  readonly #verdicts = new Set<Promise<void>>();

  constructor(options: EndingsOptions) {
    this.#options = options;
  }

  /** To be called before the session ends; afterwards, `follow` must be told of the call that does it. */
  begin(sid: string | undefined, uid: string, reason: EndReason, actors: readonly SessionRequest[]): Ending {
    const key = keyOf(sid, uid);
    const known = sid === undefined ? undefined : this.#undecided.get(key);
    if (known) {
      for (const actor of actors) known.actors.add(actor);
      return known;
    }
    const held = this.#options.recorder.hold(uid, reason, sid);
    const ending: Ending = { sid, uid, actors: new Set(actors), calls: [], held };
    if (sid !== undefined) this.#undecided.set(key, ending);
    return ending;
  }

  follow(ending: Ending, call: Promise<StoreOutcome>): void {
    if (ending.calls.push(call) > 1) return;
    const verdict = this.#decide(ending).finally(() => this.#verdicts.delete(verdict));
    this.#verdicts.add(verdict);
  }

  /** Resolves when no verdict is open. */
  async decided(): Promise<void> {
    while (this.#verdicts.size > 0) await Promise.all(this.#verdicts);
  }

  async #decide(ending: Ending): Promise<void> {
    let heard: readonly StoreOutcome[];
    let ended: boolean;
    do {
      heard = await this.#callsOver(ending);
      await this.#actorsSettled(ending);
      ended = heard.some((outcome) => outcome !== 'failed') && !(await this.#stillLoggedIn(ending, heard));
    } while (ending.calls.length > heard.length);
    const held = await ending.held;
    this.#undecided.delete(keyOf(ending.sid, ending.uid));
    if (ended) held?.release([...ending.actors]);
    else held?.cancel();
  }

  async #callsOver({ calls }: Ending): Promise<readonly StoreOutcome[]> {
    const { hurry } = this.#options;
    const silent = calls.map((): StoreOutcome => 'silent');
    return Promise.race([Promise.all(calls), once(hurry).then(() => silent)]);
  }

  /** With several actors it is not known which one did it: when the first is done, the others get a grace. */
  async #actorsSettled({ actors }: Ending): Promise<void> {
    const { graceMs, hurry } = this.#options;
    if (actors.size === 0) return;
    const each = [...actors].map((actor) => settled(actor.res, graceMs, hurry));
    const grace = Promise.race(each).then(() => pause(graceMs, undefined, { ref: false }));
    await Promise.race([Promise.all(each), grace]);
  }

  /** Whether a browser that took part still gets this user – by the sessions that the requests have in the end. */
  async #stillLoggedIn({ sid, uid, actors }: Ending, heard: readonly StoreOutcome[]): Promise<boolean> {
    const sids = new Set([...actors].map((actor) => actor.sessionID));
    if (heard.includes('silent')) sids.add(sid);
    for (const final of sids) {
      if (final !== undefined && (await this.#ask(final)) === uid) return true;
    }
    return false;
  }

  /** A store that cannot be asked leaves what its calls said: the end counts. */
  async #ask(sid: string): Promise<string | undefined> {
    const late = pause(ASK_TIMEOUT_MS, undefined, { ref: false });
    return Promise.race([this.#options.ask(sid), late]).catch(() => undefined);
  }
}

function keyOf(sid: string | undefined, uid: string): string {
  return JSON.stringify([sid, uid]);
}

async function once(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
}
