/**
 * For the other packages of this project, and for `overrideProvider` in a host's test: changes without notice.
 *
 * @internal
 */
export { ErasureAttempt } from './erasure/erasure-attempt.js';
export { ErasureCalls } from './erasure/erasure-calls.js';
export { ErasureExecution } from './erasure/erasure-execution.js';
export { ErasureMaintenance } from './erasure/erasure-maintenance.js';
export { ErasureQueue } from './erasure/erasure-queue.js';
export { ErasureStorage } from './erasure/erasure-storage.js';
export { JobRunner } from './jobs/job-runner.js';
export { FallbackQueue } from './logout/fallback-queue.js';
export { LogoutDelivery } from './logout/logout-delivery.js';
export { LogoutQueue } from './logout/logout-queue.js';
export { LogoutSender } from './logout/logout-sender.js';
export { LogoutTokenSigner } from './logout/logout-token-signer.js';
export { Application } from './module/application.js';
export { DebateSpaceLifecycle } from './module/debate-space.lifecycle.js';
export { Shutdown } from './module/shutdown.js';
export { optionHints } from './options/option-problem.js';
export { AccessTokens } from './service/access-tokens.js';
export { LogoutRoute } from './service/logout-route.js';
export { proxyAuthorization, proxyFor } from './service/proxy.js';
export { RateLimiter } from './service/rate-limiter.js';
export { ServiceClient } from './service/service-client.js';
export { ServicePause } from './service/service-pause.js';
export { Transport } from './service/transport.js';
export { UsersApi } from './service/users-api.js';
export { SessionRegistry } from './session-end/expiry/session-registry.js';
export { SessionEndDetector } from './session-end/platforms/session-end-detector.js';
export { EndRecorder } from './session-end/verdict/end-recorder.js';
export { validateUid } from './uid.js';
