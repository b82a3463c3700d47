/**
 * For the other packages of this project, and for `overrideProvider` in a host's test: changes without notice.
 *
 * @internal
 */
export { ErasureAttempt } from './erasure/erasure-attempt.js';
export { ErasureCalls } from './erasure/erasure-calls.js';
export { ErasureRepository } from './erasure/erasure-repository.js';
export { ErasureWorker } from './erasure/erasure-worker.js';
export { LogoutDelivery } from './logout/logout-delivery.js';
export { LogoutQueues } from './logout/logout-queues.js';
export { LogoutRecorder } from './logout/logout-recorder.js';
export { LogoutSender } from './logout/logout-sender.js';
export { LogoutTokenSigner } from './logout/logout-token-signer.js';
export { Application } from './module/application.js';
export { DebateSpaceLifecycle } from './module/debate-space.lifecycle.js';
export { Runners } from './module/runners.js';
export { SessionWatch } from './module/session-watch.js';
export { Shutdown } from './module/shutdown.js';
export { AccessTokens } from './service/calls/access-tokens.js';
export { LogoutRoute } from './service/calls/logout-route.js';
export { RateLimiter } from './service/rate-limiter.js';
export { ServiceClient } from './service/calls/service-client.js';
export { ServicePause } from './service/http/service-pause.js';
export { Transport } from './service/http/transport.js';
export { UsersApi } from './service/calls/users-api.js';
export { SessionEndWatcher } from './session-end/watch-session-ends.js';
export { storageMigration } from './storage/migration.js';
export { namedUid } from './uid-rule.js';
