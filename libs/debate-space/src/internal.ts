/**
 * For the other packages of this project only: changes without notice.
 *
 * @internal
 */
export { proxyFor } from './remote/proxy-for.js';
export { proxyAuthorization } from './remote/proxy-tunnel.js';
export { uidProblem } from './remote/uid.js';
