import type { Containment } from '../../async/containment.js';
import type { OpenWaits } from '../../async/open-waits.js';
import type { PendingTasks } from '../../async/pending-tasks.js';
import type { SessionUid } from '../session-options.js';
import type { SetupWarnings } from '../setup-warnings.js';
import type { EndRecorder } from './end-recorder.js';
import type { OpenRequests } from './open-requests.js';

/** What everything that watches the sessions of one application shares. */
export interface DetectorContext {
  readonly recorder: EndRecorder;
  readonly uid: SessionUid;
  /** How long a response that is still open may delay the verdict on an end. */
  readonly graceMs: number;
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  /** The ends that are not decided, or not recorded, yet. */
  readonly tasks: PendingTasks;
  /** Closed when the app shuts down: nothing is waited for any more. */
  readonly waits: OpenWaits;
  readonly openRequests: OpenRequests;
  /** For options that need to know every live session. */
  readonly registryWriter: EndedSessions | undefined;
}

/** The live sessions of all users: here only those that end. */
interface EndedSessions {
  /** Whether an end counts only if the user has no other live session. */
  readonly lastOnly: boolean;
  /** @returns whether the end is to be reported: if both are true */
  ended(sid: string, uid: string): Promise<{ readonly isFirst: boolean; readonly isLast: boolean }>;
  /** The end is reported. */
  reported(sid: string, uid: string): Promise<unknown>;
  forget(sid: string, uid: string): Promise<unknown>;
}
