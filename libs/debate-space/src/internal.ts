/**
 * For the other packages of this project, and for `overrideProvider` in a host's test: changes without notice.
 *
 * @internal
 */
export { ErasureAttempt } from './erasure/execution/erasure-attempt.js';
export { ErasureCalls } from './erasure/execution/erasure-calls.js';
export { ErasureExecution } from './erasure/execution/erasure-execution.js';
export { ErasureMaintenance } from './erasure/queue/erasure-maintenance.js';
export { ErasureQueue } from './erasure/queue/erasure-queue.js';
export { ErasureStorage } from './erasure/queue/erasure-storage.js';
export { FallbackQueue } from './logout/queue/fallback-queue.js';
export { LogoutDelivery } from './logout/delivery/logout-delivery.js';
export { LogoutQueue } from './logout/queue/logout-queue.js';
export { LogoutSender } from './logout/delivery/logout-delivery.js';
export { LogoutTokenSigner } from './logout/delivery/logout-token-signer.js';
export { Application } from './module/application.js';
export { DebateSpaceLifecycle } from './module/debate-space.lifecycle.js';
export { SessionWatch } from './module/session-watch.js';
export { Shutdown } from './module/shutdown.js';
export { optionHints } from './options/option-problem.js';
export { AccessTokens } from './service/calls/access-tokens.js';
export { LogoutRoute } from './service/calls/logout-route.js';
export { isHtml } from './service/http/web-page.js';
export { proxyAuthorization, proxyFor } from './service/http/undici-sender.js';
export { RateLimiter } from './service/rate-limiter.js';
export { ServiceClient } from './service/calls/service-client.js';
export { ServicePause } from './service/http/service-pause.js';
export { Transport } from './service/http/transport.js';
export { UsersApi } from './service/calls/users-api.js';
export { LogoutRecorder } from './logout/queue/logout-recorder.js';
export { SessionRegistry } from './live-sessions/session-registry.js';
export { JobRunner } from 'durable-jobs';
export { namedUid } from './uid-rule.js';
export { SessionEndWatcher } from './session-end/watch-session-ends.js';
export { storageMigration } from './storage/migration.js';
