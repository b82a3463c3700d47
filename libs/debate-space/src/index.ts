export { DebateSpaceModule } from './module/debate-space.module.js';
export type { DebateSpaceModuleExtras } from './module/debate-space.module.js';
export type {
  CookieRequest,
  SessionCookie,
  SessionRecord,
  SessionStore,
  SessionUid,
} from './session-end/session-end.js';
export type { DebateSpaceSessionOptions } from './live-sessions/session-options.js';
export type { DebateSpaceErasureOptions } from './erasure/erasure-options.js';
export type { DebateSpaceHttpOptions, DebateSpaceUsersOptions } from './service/http/http-options.js';
export type { DebateSpaceLogoutOptions, LogoutClaims, LogoutClaimsContext } from './logout/logout-options.js';
export type { DebateSpaceModuleOptions, DebateSpaceOptionsFactory } from './module/module-options.js';
export { DebateSpaceService, type CallOptions, type FindUserOptions } from './api/debate-space.service.js';
export { getDebateSpaceToken, InjectDebateSpace } from './api/debate-space.tokens.js';
export {
  DebateSpaceErasures,
  type BulkErasureRequest,
  type DryRunOptions,
} from './api/debate-space-erasures.js';
export type { ErasureMode, ErasureOutcome } from './events.js';
export type {
  BeforeErase,
  BeforeEraseAnswer,
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  ErasureState,
  ErasureStatus,
  RetryingErasure,
  PendingErasure,
  RequestedErasure,
} from './erasure/erasure.js';
export { DebateSpaceEvents } from './api/debate-space-events.js';
export type {
  AttemptEvent,
  DebateSpaceEvent,
  EndReason,
  SetupWarningCode,
  ErasureEvent,
  LogoutEvent,
  UserErasureEvent,
} from './events.js';
export {
  EndsDebateSession,
  SessionEndInterceptor,
  type EndsDebateSessionOptions,
} from './api/session-end.interceptor.js';
export {
  DebateSpaceHealth,
  type DebateSpaceHealthOptions,
  type DebateSpaceHealthReport,
  type HealthState,
} from './api/debate-space-health.js';
export {
  DebateSpaceOutbox,
  type DrainedStats,
  type DrainOptions,
  type OutboxStats,
} from './api/debate-space-outbox.js';
export type { LogoutHistoryEntry, ParkedLogout } from './logout/logout-repository.js';
export { memoryStorage } from './storage/memory-storage.js';
export type { StorageEngine, StorageWarning } from './storage/engine.js';
export type { HostTransaction } from './storage/storage.js';
export type { ErasureDryRun, UidSource } from './erasure/uid-source.js';
export type { FindAccounts, OrphanedUser, OrphansOptions } from './service/calls/user-walks.js';
export type { DebateSpaceUser, ListUsersQuery, UserFilters, UserPage } from './service/calls/listed-users.js';
export type { HttpAdapter } from './service/http/axios-sender.js';
export {
  AbortedError,
  AuthenticationError,
  DebateSpaceError,
  DebateSpaceOptionsError,
  DebateSpaceRequestError,
  ErasureError,
  InvalidArgumentError,
  InvalidUidError,
  NetworkError,
  NoAccountsError,
  PageLimitError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  StorageError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  UserNotFoundError,
  type DebateSpaceErrorCode,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
  type OptionProblem,
} from './errors.js';
