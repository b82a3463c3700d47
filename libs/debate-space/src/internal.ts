/**
 * For the other packages of this project only: changes without notice.
 *
 * @internal
 */
export { optionHints } from './options/option-hints.js';
export { proxyAuthorization, proxyFor } from './service/proxy.js';
export { uidProblem } from './uid.js';
