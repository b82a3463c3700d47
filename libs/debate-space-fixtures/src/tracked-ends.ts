import { OpenRequests } from '../../debate-space/src/session-end/active-requests.js';
import { BrowserMoves } from '../../debate-space/src/session-end/browser-cookies.js';
import { Containment } from '../../debate-space/src/session-end/containment.js';
import type { WatchContext } from '../../debate-space/src/session-end/context.js';
import { ObservedCall } from '../../debate-space/src/session-end/decide-end.js';
import { EndReporter } from '../../debate-space/src/session-end/end-reporter.js';
import { EndTracker } from '../../debate-space/src/session-end/end-tracker.js';
import type { LiveSessions } from '../../debate-space/src/session-end/session-end.js';
import type { PossibleEnd } from '../../debate-space/src/session-end/end-tracker.js';
import type { SessionRequest } from '../../debate-space/src/session-end/session-request.js';
import { OpenWaits, PendingTasks } from '../../debate-space/src/session-end/waits.js';
import { Leaving } from './leaving-requests.js';

export interface TrackedEnds {
  readonly ends: EndTracker;
  readonly tasks: PendingTasks;
  readonly ended: string[];
  readonly openRequests: OpenRequests;
  readonly moves: BrowserMoves;
  readonly waits: OpenWaits;
}

/** @param stored the users of the sessions that the store has */
export function trackerOf(
  stored: ReadonlyMap<string, string>,
  more: Partial<WatchContext> = {},
): TrackedEnds {
  const ended: string[] = [];
  const containment = new Containment(() => undefined);
  const onSessionEnd = ({ uid }: { readonly uid: string }): void => void ended.push(uid);
  const reporter = new EndReporter({ onSessionEnd }, containment, 10_000);
  const waits = new OpenWaits();
  const tasks = new PendingTasks();
  const user = (sid: string): Promise<string | undefined> => Promise.resolve(stored.get(sid));
  const openRequests = new OpenRequests(containment, false);
  const shared = { reporter, graceMs: 10, waits, containment, tasks, openRequests };
  const context = { ...shared, ...more } as unknown as WatchContext;
  const reader = { user, userNow: ({ session }: SessionRequest) => session as string | undefined };
  const moves = new BrowserMoves();
  return { ends: new EndTracker({ ...context, reader, moves }), tasks, ended, openRequests, moves, waits };
}

/** A call that the store has done. */
export const done = (): ObservedCall => {
  const call = new ObservedCall();
  call.end('done');
  return call;
};

/** Notes what becomes of sessions, in one place. */
export function livesIn(
  notes: string[],
  { lastOnly = false, isFirst = true, isLast = true } = {},
): Pick<WatchContext, 'liveSessions'> {
  const note = (what: string) => (sid: string) => Promise.resolve(notes.push(`${sid} ${what}`));
  const ended = (sid: string): ReturnType<LiveSessions['ended']> => {
    notes.push(`${sid} ended`);
    return Promise.resolve({ isFirst, isLast });
  };
  const saved = (sid: string): void => void notes.push(`${sid} saved`);
  const lives = { lastOnly, ended, saved, reported: note('reported'), forget: note('forgotten') };
  return { liveSessions: lives as unknown as LiveSessions };
}

export const asRequest = (request: Leaving): SessionRequest => request as unknown as SessionRequest;
export const asRequests = (...requests: readonly Leaving[]): readonly SessionRequest[] =>
  requests.map(asRequest);

/** The session s1 of alice ends by these requests. */
export const endBy = (...actors: readonly Leaving[]): PossibleEnd => ({
  ...{ sid: 's1', uid: 'alice', reason: 'destroyed', call: done(), actors: asRequests(...actors) },
});
/** The same, and no request is known that ends it. */
export const endOfJob = (sid = 's1', uid = 'alice', call = done()): PossibleEnd => ({
  sid,
  uid,
  reason: 'destroyed',
  call,
});

/** A request that goes on with another session, and without a user. */
export const gone = (more: Partial<Leaving> = {}): Leaving => Object.assign(new Leaving('s2', []), more);
