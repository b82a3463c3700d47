/**
 * For the other packages of this project only: changes without notice.
 *
 * @internal
 */
export { proxyAuthorization, proxyFor } from './service/proxy.js';
export { uidProblem } from './uid.js';
