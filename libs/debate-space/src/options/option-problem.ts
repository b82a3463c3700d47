import type { OptionProblem } from '../errors.js';

/** For an option that is refused: what it is, or where it comes from. */
const HINTS: Readonly<Record<string, string>> = {
  apiKey: 'copy it from the administration panel, Configuration > General',
  secretKey: 'copy it from the administration panel, Configuration > General',
  applicationName: 'it is the last part of the logout route, {auth_url}/auth/logout/{application_name}',
  authUrl: 'it is the host root of the service, such as https://debate.example.org',
  storageKey: 'make one with: openssl rand -base64 32',
  'logout.issuer': 'leave it out for the application name',
  'http.adapter': "leave it out for the plugin's own",
};

/** @param option also one of several values of an option, as in `storageKey.1`; its hint is that of the option */
export function optionProblem(option: string, problem: string, hint?: string): OptionProblem {
  const [name = ''] = option.split(/\.\d/, 1);
  return { option, problem, hint: hint ?? HINTS[name] ?? 'see docs/options.md' };
}

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
