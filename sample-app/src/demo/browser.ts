const CSRF_FIELD = /name="_csrf" value="([0-9a-f]+)"/;

/** A browser without a window: it keeps its cookies, and sends forms with the token of their page. */
export class Browser {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Cookie', [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '));
    const response = await fetch(new URL(path, this.#origin), { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      this.#cookies.set(name, value);
    }
    return response;
  }

  /** Opens a page, and follows redirects. */
  async open(path: string): Promise<string> {
    const response = await this.request(path);
    const next = response.headers.get('location');
    return next === null ? response.text() : this.open(next);
  }

  submitWithoutToken(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request(path, { method: 'POST', body: new URLSearchParams(fields) });
  }

  /** Sends a form. */
  async submit(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
    const [, token = ''] = CSRF_FIELD.exec(await this.open('/')) ?? [];
    return this.submitWithoutToken(path, { ...fields, _csrf: token });
  }

  logIn(username: string, password = 'demo'): Promise<Response> {
    return this.submit('/login', { username, password });
  }
}
