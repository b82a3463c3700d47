import { InvalidLogoutToken, type LogoutTokenVerifier } from '../logout-token.js';
import { formFields, jsonAnswer, Refusal, type ServiceCall } from '../service/http.js';
import type { Perform } from '../service/contract-route.js';
import { type SimulatedUsers, fullName, type SimulatedUser } from '../state/users.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import type { ClientAuthorization } from './client-authorization.js';
import type { SimulatorSettings } from '../simulator-options.js';

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

/** Section 4.5. A user who is not signed in is logged out already, hence 200 as well. */
export function logOutUser(
  applicationName: string,
  verifier: LogoutTokenVerifier,
  debate: DebateSessions,
): Perform {
  return (call) => {
    if (call.params.application_name !== applicationName) {
      throw Refusal.of(404, 'No application has this name');
    }
    const token = formFields(call).get('logout_token');
    if (token === undefined) throw Refusal.oauth(400, 'invalid_request', 'logout_token is missing');
    try {
      debate.signOut(verifier.verify(token).sub);
    } catch (error) {
      throw error instanceof InvalidLogoutToken
        ? Refusal.oauth(400, 'invalid_request', error.message)
        : error;
    }
    return jsonAnswer(200, { success: true }, { 'cache-control': 'no-store' });
  };
}

/** Section 4.4. Further query parameters are put on record and otherwise ignored. */
export function listUsers(
  settings: Pick<SimulatorSettings, 'pagingHeaders'>,
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
    return jsonAnswer(200, { success: true, data }, headers);
  };
}

function userRecord({ contributions, ...user }: SimulatedUser): Record<string, unknown> {
  const full_name = fullName({ contributions, ...user });
  return { ...user, full_name, contributions_count: contributions };
}

/** A page of a list: its position, and how many pages there are. */
export interface ListPage {
  readonly page: number;
  readonly perPage: number;
  readonly total: number;
  readonly totalPages: number;
}

/** @throws Refusal 422 unless `page` >= 1 (default 1) and `per_page` is 1 to 100 (default 20) */
export function requestedPage(query: ServiceCall['query'], total: number): ListPage {
  const page = positiveInteger('page', query.page ?? '1', Number.MAX_SAFE_INTEGER);
  const perPage = positiveInteger('per_page', query.per_page ?? '20', 100);
  return { page, perPage, total, totalPages: Math.max(1, Math.ceil(total / perPage)) };
}

/** @param address of the list; @param query of the request, whose filters the links repeat */
export function pagingHeaders(
  { page, perPage, total, totalPages }: ListPage,
  address: string,
  query: ServiceCall['query'],
): Record<string, string> {
  const link = (rel: string, target: number): string => {
    const url = new URL(address);
    for (const [name, values] of Object.entries(query)) {
      // The API key stays out of the answer.
      if (name !== 'api_key') for (const value of [values].flat()) url.searchParams.append(name, value);
    }
    url.searchParams.set('page', String(target));
    return `<${url.href}>; rel="${rel}"`;
  };
  const links = [link('first', 1)];
  if (page > 1) links.push(link('prev', Math.min(page - 1, totalPages)));
  if (page < totalPages) links.push(link('next', page + 1));
  links.push(link('last', totalPages));
  return {
    total: String(total),
    'total-pages': String(totalPages),
    'current-page': String(page),
    'next-page': page < totalPages ? String(page + 1) : '',
    'page-items': String(perPage),
    link: links.join(', '),
  };
}

function positiveInteger(name: string, value: string | string[], max: number): number {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : 0;
  if (number >= 1 && number <= max) return number;
  throw Refusal.of(422, `${name} must be an integer from 1${max <= 100 ? ` to ${max}` : ''}`);
}
