import { getProxyForUrl } from 'proxy-from-env';
import { isLoopback } from '../service-url.js';

/**
 * The proxy for an address by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case. Requests
 * to loopback never go through a proxy: over plain HTTP, it would read the keys.
 * @throws an error with the code `INVALID_PROXY` when the variable holds no URL; it does not show what it holds
 */
export function proxyFor(address: URL): URL | undefined {
  if (isLoopback(address.hostname)) return undefined;
  const proxy = getProxyForUrl(address.href);
  if (proxy === '') return undefined;
  if (URL.canParse(proxy)) return new URL(proxy);
  throw Object.assign(new Error('the proxy of the environment is not a URL'), { code: 'INVALID_PROXY' });
}
