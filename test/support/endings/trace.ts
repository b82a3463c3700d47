// All that a host, its store and its browsers learn of a row: the same with the plugin and without it.

type Method = (this: unknown, ...args: unknown[]) => unknown;

const WRITES = ['set', 'touch', 'destroy', 'clear'];
/** Others in each run. */
const VOLATILE = ['date', 'connection', 'keep-alive', 'transfer-encoding'];

export class Trace {
  /** By browser, each request with its answer. */
  readonly #browsers: string[][] = [];
  /** The session as handlers have it. */
  readonly #handlers: string[] = [];
  /** What reached the store, and what it answered. */
  readonly #calls: string[] = [];
  readonly #sids: string[] = [];

  /** @param many whether requests run at once, so that their calls have no order */
  constructor(readonly many: boolean) {}

  lines(): Readonly<Record<string, readonly unknown[]>> {
    if (!this.many) return { browsers: this.#browsers, handlers: this.#handlers, store: this.#calls };
    const nameless = (lines: readonly string[]): string[] =>
      lines.map((line) => line.replaceAll(/\bs\d+\b/g, 's'));
    return {
      browsers: this.#browsers.map(nameless),
      handlers: nameless(this.#handlers).toSorted(),
      store: nameless(this.#calls).toSorted(),
    };
  }

  /** @returns `s1`, `s2`, … in the order of their appearance */
  sid(sid: unknown): string {
    if (typeof sid !== 'string') return 'none';
    if (!this.#sids.includes(sid)) this.#sids.push(sid);
    return `s${this.#sids.indexOf(sid) + 1}`;
  }

  handler(line: string): void {
    this.#handlers.push(line);
  }

  async answered(browser: number, request: string, response: Response): Promise<string> {
    const body = await response.text();
    this.head(browser, request, response, body);
    return body;
  }

  head(browser: number, request: string, { status, headers }: Response, body = '…'): void {
    const others = [...headers].filter(([name]) => !VOLATILE.includes(name) && name !== 'set-cookie');
    const cookies = headers.getSetCookie().map((cookie) => this.#cookie(cookie));
    const head = [...others.map((pair) => pair.join(': ')), ...cookies].join(', ');
    (this.#browsers[browser] ??= []).push(`${request}: ${status} {${head}} ${body}`);
  }

  #cookie(cookie: string): string {
    const [pair = '', ...attributes] = cookie.split('; ');
    const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
    const fixed = attributes.map((each) =>
      each.startsWith('Expires=') && !each.startsWith('Expires=Thu, 01 Jan 1970') ? 'Expires=*' : each,
    );
    const sid = /^(connect\.sid|sessionId)$/.test(name) ? this.sid(sidIn(value)) : '*';
    return [`${name}=${value && sid}`, ...fixed].join('; ');
  }

  /** Notes each write that reaches the store, as a subclass would. Reads are not noted: the plugin may read. */
  record<Store extends object>(store: Store, writes = WRITES): Store {
    const between = Object.create(Reflect.getPrototypeOf(store)) as object;
    const note = (sid: unknown, line: string): void => {
      const alias = typeof sid === 'string' ? this.sid(sid) : 'all';
      this.#calls.push(line.replace('SID', alias));
    };
    for (const name of writes) {
      const method: unknown = Reflect.get(store, name);
      if (typeof method !== 'function') continue;
      const value: Method = function (...args) {
        const [sid, row] = args;
        note(sid, `${name} SID${name === 'set' ? ` ${contentOf(row)}` : ''}`);
        const last = args.at(-1);
        const answer: Method = function (...results) {
          note(
            sid,
            `${name} SID: ${results.map((each) => (each instanceof Error ? each.message : typeof each)).join()}`,
          );
          return Reflect.apply(last as Method, this, results);
        };
        const passed = typeof last === 'function' ? args.with(-1, answer) : args;
        return Reflect.apply(method, this, passed) as unknown;
      };
      Object.defineProperty(value, 'length', { value: method.length });
      Object.defineProperty(between, name, { value, writable: true, configurable: true });
    }
    return Object.setPrototypeOf(store, between) as Store;
  }
}

/** The id of a session in the value of its cookie. */
export function sidIn(value: string): string {
  return decodeURIComponent(value).replace(/^s:/, '').split('.')[0] ?? '';
}

/** Without the cookie, whose dates are others in each run. */
function contentOf(row: unknown): string {
  return JSON.stringify(row, (key, value: unknown) => (key === 'cookie' ? undefined : value));
}
