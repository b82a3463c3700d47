import { CookieJar } from 'tough-cookie';

/** As the global one, for hosts that have no server of HTTP/1.1. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A browser as far as sessions go: it keeps cookies and follows nothing. */
export class Browser {
  readonly #jar = new CookieJar();
  readonly #origin: string;
  readonly #fetch: Fetch;
  /** What it sends in front of the cookies that it keeps, as it is. */
  further: readonly string[] = [];

  /** @param origin of the host, with the path that it is mounted at, if it is */
  constructor(origin: string, send: Fetch = fetch) {
    this.#origin = origin;
    this.#fetch = send;
  }

  /** What a client of another protocol sends along, as the browser would. */
  async cookies(): Promise<string> {
    return this.#jar.getCookieString(this.#origin);
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const url = path.startsWith('/') ? this.#origin.replace(/\/$/, '') + path : path;
    const headers = new Headers(init.headers);
    const kept = await this.#jar.getCookieString(url);
    headers.set('cookie', [...this.further, kept].join('; '));
    const response = await this.#fetch(url, { redirect: 'manual', ...init, headers });
    for (const cookie of response.headers.getSetCookie()) await this.#jar.setCookie(cookie, url);
    const cleared = response.headers.get('clear-site-data')?.split(',') ?? [];
    if (cleared.some((type) => ['"cookies"', '"*"'].includes(type.trim())))
      await this.#jar.removeAllCookies();
    return response;
  }

  async get(path: string): Promise<string> {
    return (await this.fetch(path)).text();
  }

  async post(path: string, body: Record<string, string> = {}): Promise<string> {
    return (await this.fetch(path, { method: 'POST', body: new URLSearchParams(body) })).text();
  }
}

/** A browser in which a user has logged in. */
export async function logInTo(
  host: { url: string; fetch?: Fetch },
  uid: string,
  path = '/',
): Promise<Browser> {
  const browser = new Browser(host.url, host.fetch);
  await browser.post(`${path}login`, { uid });
  return browser;
}
