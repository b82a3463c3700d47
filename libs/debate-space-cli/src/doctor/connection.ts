import { duration } from '../text.js';
import { variables } from '../variables.js';
import { fault, fine, unchecked, type CheckResult } from './check.js';
import type { Probed } from './probe.js';

const MAX_SKEW_MS = 30_000;

interface Trouble {
  readonly codes: RegExp;
  readonly detail: string;
  readonly hint: string;
}

const UNREACHABLE: readonly Trouble[] = [
  {
    codes: /^(ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/,
    detail: 'the host is not found',
    hint: `Compare the host in ${variables.authUrl}, and this machine's DNS; behind a proxy set HTTPS_PROXY.`,
  },
  {
    codes: /^ECONNREFUSED$/,
    detail: 'the host refuses the connection',
    hint: `Compare the port in ${variables.authUrl}; does the service run, and does a firewall let this machine through?`,
  },
  {
    codes:
      /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/,
    detail: 'the host does not answer',
    hint: 'Have the way to it opened: firewall, route, VPN; behind a proxy set HTTPS_PROXY.',
  },
];

const TLS: readonly Trouble[] = [
  {
    codes: /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/,
    detail: 'the certificate is not valid today',
    hint: "Check this machine's clock first; otherwise the operator of the service must renew it.",
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    detail: 'the certificate is for another host',
    hint: `Compare the host in ${variables.authUrl}; it must be one that the certificate names.`,
  },
  {
    codes: /SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED|INVALID_CA/,
    detail: 'nobody whom this machine trusts has signed the certificate',
    hint: 'Set NODE_EXTRA_CA_CERTS to a file with the certificate of the authority, for this command and for your app.',
  },
  {
    codes: /^(ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO)$/,
    detail: 'the host does not speak TLS on this port',
    hint: `Compare the port in ${variables.authUrl}.`,
  },
  {
    codes: /CERT|ERR_SSL|ERR_TLS/,
    detail: 'TLS failed',
    hint: `Compare the host in ${variables.authUrl} and its TLS settings.`,
  },
];

/** Whether the service answers at all, and whether TLS is in order. */
export function* checkConnection(probed: Probed, authUrl: string): Generator<CheckResult> {
  const { host, protocol } = new URL(authUrl);
  const isTls = protocol === 'https:';
  if (!('code' in probed)) {
    yield fine('reachability', `${host} answers`);
    if (isTls) yield fine('tls', 'the certificate is trusted');
    return;
  }
  const { code } = probed;
  const tls = TLS.find(({ codes }) => codes.test(code));
  if (tls) {
    yield fine('reachability', `${host} answers`);
    yield fault('tls', `${tls.detail} (${code})`, tls.hint);
    return;
  }
  const known = UNREACHABLE.find(({ codes }) => codes.test(code));
  const { detail, hint } = known ?? {
    detail: 'the connection breaks',
    hint: `Compare scheme and port in ${variables.authUrl}; does a proxy or a firewall stand between?`,
  };
  yield fault('reachability', `${host}: ${detail} (${code})`, hint);
  if (isTls) yield unchecked('tls', 'there is no connection');
}

/** The service takes a logout token only when both clocks agree. */
export function checkClock(probed: Probed): CheckResult {
  if ('code' in probed) return unchecked('clock', 'there is no connection');
  const { skewMs } = probed;
  if (skewMs === undefined) return unchecked('clock', 'the service does not tell its time (no Date header)');
  const apart = duration(Math.abs(skewMs));
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return fine('clock', `within ${apart} of the service's`);
  return fault(
    'clock',
    `this machine's clock is ${apart} ${skewMs > 0 ? 'behind' : 'ahead of'} the service's; logout tokens are refused beyond about 30 s`,
    'Set the clock of this machine by NTP (timedatectl set-ntp true); if it is right, tell the operator of the service.',
  );
}
