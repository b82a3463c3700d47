/** What is wrong with an address of the service, as the end of a sentence; `undefined` when nothing is. */
export function serviceUrlProblem(value: string, allowInsecureHttp: boolean): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return 'is not a URL; write it with its scheme, such as https://debate.example.org';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or a password';
  if (url.search !== '' || url.hash !== '') return 'must end with its path, without ? and #';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol !== 'http:') return `has the scheme ${url.protocol} and must have https:`;
  if (allowInsecureHttp || isLoopback(url.hostname)) return undefined;
  return 'has the scheme http: and must have https:, because keys and tokens travel there; for a closed network set http.allowInsecureHttp';
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    hostname.startsWith('127.')
  );
}
