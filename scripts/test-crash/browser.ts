import { once } from 'node:events';
import { Agent, request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';

const ANSWER_TIMEOUT_MS = 20_000;

export interface Answer {
  readonly status: number | undefined;
  readonly body: string;
  readonly cookie: string | undefined;
}

/** Sends requests as a browser does, over connections that stay open. */
export class Browser {
  readonly #agent = new Agent({ keepAlive: true });

  /** @returns `undefined` when no whole answer came */
  async post(url: string, headers: OutgoingHttpHeaders): Promise<Answer | undefined> {
    const call = request(url, { method: 'POST', agent: this.#agent, headers, timeout: ANSWER_TIMEOUT_MS });
    call.on('timeout', () => call.destroy());
    try {
      const [response] = (await once(call.end(), 'response')) as [IncomingMessage];
      let body = '';
      for await (const chunk of response) body += String(chunk); // throws when the connection is cut
      return {
        status: response.statusCode,
        body,
        cookie: response.headers['set-cookie']?.[0]?.split(';')[0],
      };
    } catch {
      return undefined;
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}
