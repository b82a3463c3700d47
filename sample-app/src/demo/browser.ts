const CSRF_FIELD = /name="_csrf" value="([0-9a-f]+)"/;

/** A browser without a window: it keeps its cookie, and sends forms as their page has them. */
export class Browser {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** What tells this browser's session from others. */
  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Cookie', this.cookie);
    if (!headers.has('Accept')) headers.set('Accept', 'text/html');
    const response = await fetch(new URL(path, this.#origin), {
      ...init,
      headers,
      redirect: 'manual',
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      this.#cookies.set(name, value);
    }
    return response;
  }

  /** Opens a page; a redirect leads on, as in any browser. */
  async open(path: string): Promise<string> {
    const response = await this.request(path);
    const next = response.headers.get('location');
    return next === null ? response.text() : this.open(next);
  }

  /** Sends a form, with the token of the page that the browser is on. */
  async submit(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.submitWithoutToken(path, { ...fields, _csrf: await this.#token() });
  }

  /** Sends a form with a file in it. */
  async upload(path: string, fields: Readonly<Record<string, string>>, ...files: File[]): Promise<Response> {
    const form = new FormData();
    for (const [name, value] of Object.entries({ ...fields, _csrf: await this.#token() })) {
      form.append(name, value);
    }
    for (const file of files) form.append('list', file);
    return this.request(path, { method: 'POST', body: form });
  }

  async submitWithoutToken(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request(path, { method: 'POST', body: new URLSearchParams(fields) });
  }

  logIn(username: string, password: string): Promise<Response> {
    return this.submit('/login', { username, password });
  }

  async #token(): Promise<string> {
    const [, token = ''] = CSRF_FIELD.exec(await this.open('/')) ?? [];
    return token;
  }
}
