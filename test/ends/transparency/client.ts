import { once } from 'node:events';
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Answer {
  readonly status: number | undefined;
  /** As they came, without the date and the cookies. */
  readonly headers: readonly string[];
  readonly cookies: readonly string[];
  readonly body: string;
}

/** A browser that is light enough for thousands of cells: it keeps the cookies of one path, by their names. */
export class Client {
  readonly #cookies = new Map<string, string>();

  constructor(
    private readonly url: string,
    private readonly agent: Agent,
  ) {}

  /** Sends a request whose answer may not be wanted: it can be destroyed. */
  open(path: string, uid?: string): ClientRequest {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie && { cookie }), 'content-type': 'application/x-www-form-urlencoded' };
    const method = path === '/whoami' ? 'GET' : 'POST';
    const sent = request(this.url + path, { agent: this.agent, method, headers });
    sent.end(uid === undefined ? undefined : new URLSearchParams({ uid }).toString());
    return sent;
  }

  async ask(path: string, uid?: string): Promise<Answer> {
    const [response] = (await once(this.open(path, uid), 'response')) as [IncomingMessage];
    const { statusCode: status, rawHeaders } = response;
    const pairs = rawHeaders.flatMap((name, n) =>
      n % 2 === 0 ? [[name.toLowerCase(), rawHeaders[n + 1] ?? ''] as const] : [],
    );
    const isCookie = ([name]: (typeof pairs)[number]): boolean => name === 'set-cookie';
    const cookies = pairs.filter(isCookie).map(([, value]) => value);
    for (const each of cookies) this.#keep(each);
    const others = pairs.filter((pair) => !isCookie(pair) && pair[0] !== 'date');
    return { status, headers: others.map((pair) => pair.join(': ')), cookies, body: await text(response) };
  }

  #keep(cookie: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
    if (cookie.includes('Expires=Thu, 01 Jan 1970')) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}
