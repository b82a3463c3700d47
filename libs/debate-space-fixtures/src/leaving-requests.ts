import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { BrowserMoves } from '../../debate-space/src/session-end/browser-cookies.js';
import { Containment, type MaybePromise } from '../../debate-space/src/session-end/containment.js';
import { hasEnded, ObservedCall } from '../../debate-space/src/session-end/decide-end.js';
import type { EndCandidate, StoreOutcome } from '../../debate-space/src/session-end/decide-end.js';
import type { CloseListener } from '../../debate-space/src/session-end/session-request.js';
import { OpenWaits } from '../../debate-space/src/session-end/waits.js';

/** A request of a browser that has sent the session s1; the test closes its response. */
export class Leaving {
  static #answers = 0;
  hasLetGo = true;
  readonly isAnswered = true;
  isCommitted = false;
  readonly cookieHeader = 'sid=s1';
  readonly native = {};
  readonly res = new ServerResponse(new IncomingMessage(new Socket()));
  /** Who is logged in. */
  session: string | undefined;
  /** Of the order of requests and sessions. */
  since = 0.5;
  isFinished = false;
  answeredAt = 0;
  #listener: () => void = () => undefined;

  constructor(
    public sessionID: string,
    readonly setCookies: readonly string[],
  ) {}

  get isClosed(): boolean {
    return this.isFinished;
  }
  onClose(listener: CloseListener): boolean {
    this.#listener = () => {
      listener.closed(this as never);
    };
    return true;
  }
  /** Its client has gone away; the handler goes on. */
  abort(): void {
    this.#listener();
  }
  close(): this {
    this.isFinished = true;
    this.answeredAt = Leaving.#answers += 1;
    this.#listener();
    return this;
  }
}

export function callOf(outcome: StoreOutcome | undefined): ObservedCall {
  const call = new ObservedCall();
  if (outcome !== undefined) call.end(outcome);
  return call;
}

export type Candidate = Partial<Omit<EndCandidate, 'actors' | 'holders' | 'calls'>> & {
  readonly actors?: readonly Leaving[];
  readonly holders?: readonly Leaving[];
  readonly outcomes?: readonly (StoreOutcome | undefined)[];
  readonly calls?: readonly ObservedCall[];
};

/** The session s1 of alice, which the store says that it has destroyed. */
export function endOf(candidate: Candidate): EndCandidate {
  const { actors = [], holders = [], outcomes = ['done'], calls = outcomes.map(callOf), ...more } = candidate;
  const requests = { actors, holders } as unknown as Pick<EndCandidate, 'actors' | 'holders'>;
  return { sid: 's1', uid: 'alice', savedBack: undefined, isKept: false, calls, ...requests, ...more };
}

export type Users = (sid: string) => MaybePromise<string | undefined>;

/** An app whose store has these users. */
export class EndingHost {
  readonly waits = new OpenWaits();
  readonly faults: string[] = [];
  readonly moves = new BrowserMoves();
  userNow: string | undefined;
  user: Users;

  constructor(stored: Record<string, string> | Users = {}) {
    this.user = typeof stored === 'function' ? stored : (sid) => stored[sid];
  }

  /** Whether the session has ended; `undefined` until that is decided. */
  judge(candidate: Candidate): { ended: boolean | undefined; readonly verdict: Promise<boolean> } {
    const reader = { user: (sid: string) => this.user(sid), userNow: () => this.userNow };
    const containment = new Containment((where) => this.faults.push(where));
    const { waits, moves } = this;
    const verdict = hasEnded(endOf(candidate), { graceMs: 1_000, waits, containment, moves, reader });
    const judged = { ended: undefined as boolean | undefined, verdict };
    void verdict.then((ended) => (judged.ended = ended));
    return judged;
  }
}
