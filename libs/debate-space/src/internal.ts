/**
 * For the other packages of this project only: changes without notice.
 *
 * @internal
 */
export { optionHints } from './options/option-problem.js';
export { proxyAuthorization, proxyFor } from './service/proxy.js';
export { uidProblem } from './uid.js';
