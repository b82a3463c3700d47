import { jsonAnswer } from '../service/answer.js';
import type { Perform } from '../service/contract-route.js';
import type { SimulatorSettings } from '../simulator-options.js';
import { fullName, type SimulatedUser } from '../state/simulated-user.js';
import type { SimulatedUsers } from '../state/simulated-users.js';
import type { ClientAuthorization } from './client-authorization.js';
import { pagingHeaders, requestedPage } from './list-page.js';

/** Section 4.4. Further query parameters are put on record and otherwise ignored. */
export function listUsers(
  settings: Pick<SimulatorSettings, 'pagingHeaders' | 'listEnvelope'>,
  authorization: ClientAuthorization,
  users: SimulatedUsers,
  address: () => string,
): Perform {
  return (call) => {
    authorization.checkBearerOrApiKey(call, 'public');
    const page = requestedPage(call.query, users.count);
    const start = (page.page - 1) * page.perPage;
    const data = users.slice(start, start + page.perPage).map(userRecord);
    const headers = settings.pagingHeaders ? pagingHeaders(page, address(), call.query) : {};
    return jsonAnswer(200, settings.listEnvelope ? { success: true, data } : data, headers);
  };
}

function userRecord({ contributions, ...user }: SimulatedUser): Record<string, unknown> {
  const full_name = fullName({ contributions, ...user });
  return { ...user, full_name, contributions_count: contributions };
}
