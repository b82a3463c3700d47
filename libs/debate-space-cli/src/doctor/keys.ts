import type { Settings } from '../settings.js';
import { variables } from '../variables.js';
import type { ServiceAddress } from './address.js';
import { fault, fine, unchecked, type CheckResult } from './check.js';
import type { Probe, Probed } from './probe.js';

/** Their names, for when they cannot be checked. */
export const KEY_CHECKS = ['keys', 'scope-authentication', 'scope-public'] as const;

type Scope = 'authentication' | 'public';

const PANEL = 'with the administration panel, Configuration > General';
const elsewhere = `Something else than the service answers, such as a firewall. Compare ${variables.authUrl} and ${variables.baseUrl}.`;
const NO_SCOPE = new Set(['invalid_scope', 'unauthorized_client']);

/** The keys, by asking for access tokens (service-interface.md, section 4.1), and what the tokens are good for. */
export async function* checkKeys(
  probe: Probe,
  { authUrl, baseUrl }: ServiceAddress,
  settings: Settings,
): AsyncGenerator<CheckResult> {
  const { apiKey = '', secretKey = '' } = settings;
  const token = (scope: Scope): Promise<Probed> =>
    probe.ask({
      method: 'POST',
      url: `${authUrl}/oauth/token`,
      form: { grant_type: 'client_credentials', client_id: apiKey, client_secret: secretKey, scope },
    });
  const list = (more: string, headers?: Record<string, string>): Promise<Probed> =>
    probe.ask({ method: 'GET', url: `${baseUrl}/users?page=1&per_page=1${more}`, headers });
  const listByKey = (): Promise<Probed> => list(`&api_key=${encodeURIComponent(apiKey)}`);

  const first = await token('authentication');
  const areRight = isToken(first) || isNoScope(first);
  yield areRight
    ? fine('keys', 'the service takes API key and secret key')
    : await refusedKeys(first, listByKey);
  if (!areRight) {
    yield unchecked('scope-authentication', 'there is no access token');
    yield unchecked('scope-public', 'there is no access token');
    return;
  }
  yield isToken(first) ? fine('scope-authentication', 'granted') : notGranted('authentication');

  if (settings.listAuth === 'apiKey') {
    yield checkList(await listByKey());
    return;
  }
  const second = await token('public');
  if (isToken(second))
    yield checkList(await list('', { authorization: `Bearer ${accessToken(second) ?? ''}` }));
  else
    yield isNoScope(second)
      ? notGranted('public')
      : fault('scope-public', said('the token route', second), 'Try again later.');
}

/** RFC 6749 has one answer for both keys; the user list knows the API key alone (section 4.4). */
async function refusedKeys(probed: Probed, listByKey: () => Promise<Probed>): Promise<CheckResult> {
  if (!('code' in probed) && probed.isWebPage)
    return fault('keys', said('the token route', probed), elsewhere);
  if ('code' in probed || ![400, 401, 403].includes(probed.status)) {
    const isMissing = !('code' in probed) && probed.status === 404;
    return fault(
      'keys',
      said('the token route', probed),
      isMissing
        ? `Compare ${variables.authUrl}: it is the host root, and the token route is {auth_url}/oauth/token.`
        : 'Try again later.',
    );
  }
  const known = await listByKey();
  const status = 'code' in known || known.isWebPage ? 0 : known.status;
  if (status === 200) {
    return fault(
      'keys',
      `the service knows the API key, and refuses the secret key (${probed.status})`,
      `Compare ${variables.secretKey} ${PANEL}.`,
    );
  }
  if (status === 401 || status === 403) {
    return fault(
      'keys',
      `the service does not know the API key (${probed.status})`,
      `Compare ${variables.apiKey} ${PANEL}; the secret key is checked when it is right.`,
    );
  }
  return fault(
    'keys',
    `the service refuses API key or secret key (${probed.status}), and does not say which`,
    `Compare ${variables.apiKey} and ${variables.secretKey} ${PANEL}.`,
  );
}

function checkList(probed: Probed): CheckResult {
  if (!('code' in probed) && probed.status === 200 && !probed.isWebPage) {
    const total = /^\d+$/.exec(probed.header('total') ?? '')?.[0];
    return fine(
      'scope-public',
      `the user list answers${total === undefined ? '' : `; it has ${total} users`}`,
    );
  }
  const isMissing = !('code' in probed) && probed.status === 404;
  if (!('code' in probed) && probed.isWebPage)
    return fault('scope-public', said('the user list', probed), elsewhere);
  const hint = isMissing
    ? `Compare ${variables.baseUrl}: the user list is {base_url}/users.`
    : `Ask the operator of the service whether this API key may read the user list; ${variables.listAuth}=apiKey asks without a token.`;
  return fault('scope-public', said('the user list', probed), hint);
}

function notGranted(scope: Scope): CheckResult {
  const needed =
    scope === 'authentication'
      ? 'erasures need it'
      : `the user list needs it, unless ${variables.listAuth}=apiKey`;
  return fault(
    `scope-${scope}`,
    `the keys are right, and the service does not grant them this scope; ${needed}`,
    'Ask the operator of the service to allow it for this API key.',
  );
}

function said(who: string, probed: Probed): string {
  if ('code' in probed) return `${who} cannot be reached (${probed.code})`;
  return `${who} answers ${probed.status}${probed.isWebPage ? ' with a web page' : ''}`;
}

function isToken(probed: Probed): boolean {
  return accessToken(probed) !== undefined;
}

function accessToken(probed: Probed): string | undefined {
  if ('code' in probed || probed.status !== 200) return undefined;
  const { access_token: token } = Object(probed.body) as { access_token?: unknown };
  return typeof token === 'string' ? token : undefined;
}

function isNoScope(probed: Probed): boolean {
  if ('code' in probed) return false;
  const { error } = Object(probed.body) as { error?: unknown };
  return typeof error === 'string' && NO_SCOPE.has(error);
}
