import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { text } from 'node:stream/consumers';

/** A browser with one cookie, on one connection of HTTP/2. */
export class Http2Browser {
  readonly #session: ClientHttp2Session;
  #cookie: string | undefined;

  constructor(url: string) {
    this.#session = connect(url);
  }

  /** The text of the answer. */
  async request(method: 'GET' | 'POST', path: string): Promise<string> {
    const cookie = this.#cookie === undefined ? {} : { cookie: this.#cookie };
    const stream = this.#session.request({ ':method': method, ':path': path, ...cookie });
    stream.on('response', (headers) => {
      const [set] = headers['set-cookie'] ?? [];
      this.#cookie = set?.split(';')[0] ?? this.#cookie;
    });
    return text(stream);
  }

  async close(): Promise<void> {
    this.#session.close();
    await once(this.#session, 'close');
  }
}
