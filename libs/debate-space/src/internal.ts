/**
 * For the other packages of this project only: changes without notice.
 *
 * @internal
 */
export { proxyAuthorization, proxyFor } from './remote/proxy.js';
export { uidProblem } from './remote/uid.js';
