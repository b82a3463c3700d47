/**
 * For the other packages of this project, and for `overrideProvider` in a host's test: changes without notice.
 *
 * @internal
 */
export { LogoutTokenSigner } from './logout/logout-token-signer.js';
export { Application } from './module/application.js';
export { AccessTokens } from './service/calls/access-tokens.js';
export { LogoutRoute } from './service/calls/logout-route.js';
export { Transport } from './service/http/transport.js';
export { storageMigration } from './storage/migration.js';
export { namedUid } from './uid-rule.js';
