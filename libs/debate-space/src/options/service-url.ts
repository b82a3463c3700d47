import type { OptionProblem } from '../errors.js';
import { optionProblem } from './option-problem.js';

/** What is wrong with an address of the service; `undefined` when nothing is. */
export function validateServiceUrl(
  option: 'authUrl' | 'baseUrl',
  value: string,
  allowInsecureHttp: boolean,
): OptionProblem | undefined {
  const refused = (problem: string, hint?: string) => optionProblem(option, problem, hint);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined)
    return refused('is not a URL', 'write it with its scheme, such as https://debate.example.org');
  // First, and without the scheme that was found: of `key:secret@host`, it is the key.
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('must have the scheme https:');
  if (url.username !== '' || url.password !== '') return refused('must not hold a user name or a password');
  if (url.search !== '' || url.hash !== '') return refused('must end with its path, without ? and #');
  if (url.protocol === 'http:' && !allowInsecureHttp && !isLoopback(url.hostname)) {
    const hint = 'write it with https:, because keys and tokens travel there';
    return refused('has the scheme http:, and only http.allowInsecureHttp permits it', hint);
  }
  if (option === 'authUrl' && /\/api\/v\d+\/?$/.test(url.pathname)) {
    const hint = 'leave out /api/v1, or give that address as baseUrl';
    return refused('ends like the address of the API; it is the host root', hint);
  }
  return undefined;
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
