import { CookieJar } from 'tough-cookie';

/** A browser as far as sessions go: it keeps cookies and follows nothing. */
export class Browser {
  readonly #jar = new CookieJar();
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const url = new URL(path, this.#origin).href;
    const headers = new Headers(init.headers);
    headers.set('cookie', await this.#jar.getCookieString(url));
    const response = await fetch(url, { redirect: 'manual', ...init, headers });
    for (const cookie of response.headers.getSetCookie()) await this.#jar.setCookie(cookie, url);
    return response;
  }

  async get(path: string): Promise<string> {
    return (await this.fetch(path)).text();
  }

  async post(path: string, body: Record<string, string> = {}): Promise<string> {
    return (await this.fetch(path, { method: 'POST', body: new URLSearchParams(body) })).text();
  }
}
