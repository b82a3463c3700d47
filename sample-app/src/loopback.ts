const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Whether a host name is one of this machine alone. @param hostname as of a URL: IPv6 addresses in brackets */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.includes(hostname);
}
