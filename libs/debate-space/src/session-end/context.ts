import type { Containment } from './containment.js';
import type { EndReporter } from './end-reporter.js';
import type { LiveSessions, SessionUid } from './session-end.js';
import type { OpenRequests } from './active-requests.js';
import type { SetupWarnings } from './setup-warnings.js';
import type { OpenWaits, PendingTasks } from './waits.js';

/** What everything that watches the sessions of one application shares. */
export interface WatchContext {
  readonly reporter: EndReporter;
  readonly uid: SessionUid;
  /** How long a response that is still open may delay the verdict on an end. */
  readonly graceMs: number;
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  /** The ends that are not decided, or not reported, yet. */
  readonly tasks: PendingTasks;
  /** Closed when the app shuts down: nothing is waited for any more. */
  readonly waits: OpenWaits;
  readonly openRequests: OpenRequests;
  readonly liveSessions: LiveSessions | undefined;
}
