import { BlockList, isIP } from 'node:net';

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;

/**
 * The proxy for an address by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case. Loopback
 * is not exempt unless `NO_PROXY` says so.
 * @throws {TypeError} when the variable holds no URL
 */
export function proxyFromEnv(address: URL): URL | undefined {
  const proxy = variable(`${address.protocol.slice(0, -1)}_proxy`) || variable('all_proxy');
  if (proxy === '' || isExempt(address, variable('no_proxy'))) return undefined;
  return new URL(proxy.includes('://') ? proxy : `http://${proxy}`);
}

function isExempt({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const host = withoutBrackets(hostname);
  const ports = ['', port || (protocol === 'https:' ? '443' : '80')];
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === '' || entry === '*') return entry === '*';
      const [, name = entry, entryPort = ''] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
      return ports.includes(entryPort) && covers(withoutBrackets(name), host);
    });
}

/** `example.org` also means what is below it, as it does for curl and wget. */
function covers(entry: string, host: string): boolean {
  const name = entry.replace(/^\*?\./, '');
  if (host === name || host.endsWith(`.${name}`)) return true;
  return (LOOPBACK.test(host) && LOOPBACK.test(name)) || isInSubnet(host, entry);
}

function isInSubnet(host: string, entry: string): boolean {
  const [base = '', bits = ''] = entry.split('/');
  const version = isIP(base);
  if (version === 0 || version !== isIP(host) || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (version === 4 ? 32 : 128)) return false;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const subnet = new BlockList();
  subnet.addSubnet(base, Number(bits), family);
  return subnet.check(host, family);
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function variable(name: string): string {
  const values = [process.env[name], process.env[name.toUpperCase()]];
  return values.find((value) => value !== undefined && value !== '') ?? '';
}
