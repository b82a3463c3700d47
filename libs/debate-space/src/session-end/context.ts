import type { Containment } from '../async/containment.js';
import type { EndReporter } from './end-reporter.js';
import type { ArrivingRequests } from './request-scope.js';
import type { LiveSessions, SessionUid } from './session-end.js';
import type { SetupWarnings } from './setup-warnings.js';
import type { OpenWaits, PendingTasks } from './waits.js';

/** What all parts that watch the sessions of one app share. */
export interface WatchContext {
  readonly reporter: EndReporter;
  readonly uid: SessionUid;
  /** How long an open response may delay the verdict on an end, in milliseconds. */
  readonly graceMs: number;
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  /** The ends that are not decided or not reported yet. */
  readonly tasks: PendingTasks;
  readonly liveSessions: LiveSessions | undefined;
  /** Requests of Fastify between two hooks of ours: hooks of the host may end their session before we see it. */
  arriving: ArrivingRequests;
  /** Closed when the app shuts down: from then on nothing waits. */
  readonly waits: OpenWaits;
}
