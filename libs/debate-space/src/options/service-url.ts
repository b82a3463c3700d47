/** What is wrong with an address, as the rest of a sentence; the hint of its option when it has none of its own. */
export interface UrlProblem {
  readonly problem: string;
  readonly hint?: string;
}

/** What is wrong with an address of the service; `undefined` when nothing is. */
export function serviceUrlProblem(value: string, allowInsecureHttp: boolean): UrlProblem | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined)
    return { problem: 'is not a URL', hint: 'write it with its scheme, such as https://debate.example.org' };
  // First, and without the scheme that was found: of `key:secret@host`, it is the key.
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return { problem: 'must have the scheme https:' };
  if (url.username !== '' || url.password !== '')
    return { problem: 'must not hold a user name or a password' };
  if (url.search !== '' || url.hash !== '') return { problem: 'must end with its path, without ? and #' };
  if (url.protocol === 'https:' || allowInsecureHttp || isLoopback(url.hostname)) return undefined;
  return {
    problem: 'has the scheme http:, and only http.allowInsecureHttp permits it',
    hint: 'write it with https:, because keys and tokens travel there',
  };
}

/** Why a usable address cannot be the host root. */
export function apiPathProblem(value: string): UrlProblem | undefined {
  if (!/\/api\/v\d+\/?$/.test(new URL(value).pathname)) return undefined;
  return {
    problem: 'ends like the address of the API; it is the host root',
    hint: 'leave out /api/v1, or give that address as baseUrl',
  };
}

/** A usable address as it is joined with paths: without blanks around it, `?`, `#` and slashes at its end. */
export function serviceUrl(value: string): string {
  const { origin, pathname } = new URL(value);
  return origin + pathname.replace(/\/+$/, '');
}

export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d+){3}$/.test(hostname) // not 127.example.org
  );
}
