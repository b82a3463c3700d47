import { getProxyForUrl } from 'proxy-from-env';
import type { ServiceAddress } from './address.js';
import { fault, fine, type CheckResult } from './check.js';

/** Where requests to an address go first: the proxy that the environment names, as the plugin reads it. */
export interface ProxySetting {
  /** The variable that names it. */
  readonly variable: string;
  /** `undefined` when the variable does not hold the URL of a proxy. */
  readonly url: URL | undefined;
}

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;

/** @returns `undefined` when the requests go directly to the address; to loopback they always do */
export function proxySetting(address: string): ProxySetting | undefined {
  const { hostname, protocol } = new URL(address);
  const proxy = LOOPBACK.test(hostname) ? '' : getProxyForUrl(address);
  if (proxy === '') return undefined;
  const names = [`${protocol.slice(0, -1)}_proxy`, 'all_proxy'].flatMap((name) => [name, name.toUpperCase()]);
  const variable = names.find((name) => (process.env[name] ?? '') !== '') ?? 'HTTPS_PROXY';
  const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
  return { variable, url: url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined };
}

/** Of the environment: which proxy the requests go through. Never shows the variable's value, which may have a password. */
export function checkProxy({ authUrl, baseUrl }: ServiceAddress): CheckResult {
  const proxies = [authUrl, baseUrl].flatMap((address) => proxySetting(address) ?? []);
  const malformed = proxies.find(({ url }) => url === undefined);
  if (malformed) {
    return fault(
      'proxy',
      `${malformed.variable} is not the URL of a proxy`,
      `Set ${malformed.variable} to an http: or https: URL such as http://proxy.example.org:3128, for this command and for your app, or unset it.`,
    );
  }
  const [proxy] = proxies;
  return fine('proxy', proxy === undefined ? 'none' : `${proxy.url?.host ?? ''}, of ${proxy.variable}`);
}

/** Basic credentials (RFC 7617); a password with a bare `%` counts as it is, as in the plugin. */
export function proxyCredentials({ username, password }: URL): string | undefined {
  if (username === '') return undefined;
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
