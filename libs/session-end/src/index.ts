export { watchSessionEnds, SessionEndWatcher } from './watch-session-ends.js';
export { SessionEndModule } from './session-end.module.js';
export { defaultSessionUid, resolvedUid } from './session-user.js';
export { foundUid, hasDotSegment, namedUid, RefusedUid } from './uid-rule.js';
export type {
  CookieRequest,
  EndReason,
  EndVerdict,
  FoundSession,
  LiveSessions,
  SessionCookie,
  SessionEnd,
  SessionEndListener,
  SessionEndOptions,
  SessionRecord,
  SessionStore,
  SessionUid,
  SetupWarning,
  SetupWarningCode,
} from './session-end.js';
