import { proxyFor } from 'nestjs-debate-space/internal';
import type { ServiceAddress } from './address.js';
import { fault, fine, type CheckResult } from './check.js';

/** Where requests to an address go first: the proxy that the environment names, as the plugin reads it. */
export interface ProxySetting {
  /** The variable that names it. */
  readonly variable: string;
  /** `undefined` when the variable does not hold the URL of a proxy. */
  readonly url: URL | undefined;
}

/** @returns `undefined` when the requests go directly to the address; to loopback they always do */
export function proxySetting(address: string): ProxySetting | undefined {
  const target = new URL(address);
  let url: URL | undefined;
  try {
    url = proxyFor(target);
    if (url === undefined) return undefined;
  } catch {
    // The variable does not hold a URL.
  }
  const names = [`${target.protocol.slice(0, -1)}_proxy`, 'all_proxy'].flatMap((name) => [
    name,
    name.toUpperCase(),
  ]);
  const variable = names.find((name) => (process.env[name] ?? '') !== '') ?? 'HTTPS_PROXY';
  return { variable, url: /^https?:$/.test(url?.protocol ?? '') ? url : undefined };
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
