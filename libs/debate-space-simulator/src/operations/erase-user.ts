import { jsonAnswer } from '../service/answer.js';
import type { Perform } from '../service/contract-route.js';
import { Refusal } from '../service/refusal.js';
import type { ServiceCall } from '../service/service-call.js';
import type { SimulatedUsers } from '../state/simulated-users.js';
import type { ClientAuthorization } from './client-authorization.js';

/** Section 4.2. */
export function anonymizeUser(authorization: ClientAuthorization, users: SimulatedUsers): Perform {
  return eraseUser(authorization, (uid) => users.anonymize(uid));
}

/** Section 4.3. */
export function deleteUser(authorization: ClientAuthorization, users: SimulatedUsers): Perform {
  return eraseUser(authorization, (uid) => users.delete(uid));
}

function eraseUser(authorization: ClientAuthorization, erase: (uid: string) => boolean): Perform {
  return (call: ServiceCall) => {
    authorization.checkBearer(call, 'authentication');
    if (!erase(call.params.uid ?? '')) throw Refusal.of(404, 'No user has this uid');
    return jsonAnswer(200, { success: true });
  };
}
