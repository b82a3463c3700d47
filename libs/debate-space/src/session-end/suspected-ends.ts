import type { MaybePromise } from './containment.js';
import { beforeAnswer } from './answer-gate.js';
import type { WatchContext } from './context.js';
import type { SessionRequest } from './session-request.js';

/** Requests under way of which one may have ended a session, where no request is known to have done it. */
export interface Suspects {
  readonly requests: readonly SessionRequest[];
  /** Whether they are of the user whose session it is; else they are all that are under way. */
  readonly areOfUser: boolean;
}

/** Ends that are judged together: one request may end many sessions of a user, and causes one report. */
export interface SuspectedGroup<End> {
  readonly ends: End[];
  readonly suspects: Set<SessionRequest>;
  /** The suspects that are not answered. */
  readonly open: Set<SessionRequest>;
  readonly areOfUser: boolean;
  /** Has all of them judged. @returns a promise when the storage needs one */
  readonly close: () => MaybePromise<unknown>;
}

/** Under `last`: how long a request that is not answered may still log the user in. */
const LOGIN_TIMEOUT_MS = 5_000;

/**
 * Ends that no request is known to have caused, while requests were under way that may have (session-endings.md, rules 5
 * and 9): judged when one of these is answered. Under `last`, where each of them may log the user in, when all are.
 */
export class SuspectedEnds<End extends { readonly uid: string }> {
  readonly #context: WatchContext;
  readonly #judge: (ends: readonly End[]) => MaybePromise<unknown>;
  /** By uid, where the suspects are of that user. */
  readonly #groups = new Map<string | undefined, SuspectedGroup<End>>();

  constructor(context: WatchContext, judge: (ends: readonly End[]) => MaybePromise<unknown>) {
    this.#context = context;
    this.#judge = judge;
  }

  add(end: End, { requests, areOfUser }: Suspects): SuspectedGroup<End> {
    const key = areOfUser ? end.uid : undefined;
    const group = this.#groups.get(key) ?? this.#open(key, areOfUser);
    group.ends.push(end);
    for (const request of requests) if (!group.suspects.has(request)) this.#suspect(request, group);
    return group;
  }

  #suspect(request: SessionRequest, group: SuspectedGroup<End>): void {
    const { containment, reporter, liveSessions } = this.#context;
    group.suspects.add(request);
    group.open.add(request);
    const answering = (): MaybePromise<unknown> => {
      group.open.delete(request);
      return liveSessions?.lastOnly && group.open.size > 0 ? undefined : group.close();
    };
    beforeAnswer(request.res, { containment, timeoutMs: reporter.answerTimeoutMs, answering });
    request.onClose({ containment, closed: () => void answering() }); // its client may go away before
  }

  #open(key: string | undefined, areOfUser: boolean): SuspectedGroup<End> {
    const { containment, waits, graceMs, liveSessions } = this.#context;
    const close = (): MaybePromise<unknown> => {
      if (this.#groups.get(key) !== group) return undefined;
      this.#groups.delete(key);
      clearTimeout(timer);
      stop();
      return containment.run<unknown>('session end', () => this.#judge(group.ends), undefined);
    };
    const group = {
      ends: [],
      suspects: new Set<SessionRequest>(),
      open: new Set<SessionRequest>(),
      areOfUser,
      close,
    };
    this.#groups.set(key, group);
    const timer = setTimeout(close, liveSessions?.lastOnly ? LOGIN_TIMEOUT_MS : graceMs).unref();
    const stop = waits.onClose(close);
    return group;
  }
}
