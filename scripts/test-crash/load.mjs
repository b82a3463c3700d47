import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const ANSWER_WITHIN_MS = 20_000;

/** Browsers that log in and out again, each time as somebody else; one in eight stays logged in. */
export class Load {
  #hosts;
  #ledger;
  #random;
  #pauseMs;
  #count;
  #agent = new Agent({ keepAlive: true });
  #running = false;
  #browsers = [];
  #users = 0;

  /** @param scenario `pauseMs` between the steps of a browser, on average, and how many `browsers` */
  constructor(hosts, ledger, random, { pauseMs = 20, browsers = 12 }) {
    this.#hosts = hosts;
    this.#ledger = ledger;
    this.#random = random;
    this.#pauseMs = pauseMs;
    this.#count = browsers;
  }

  start() {
    this.#running = true;
    this.#browsers = Array.from({ length: this.#count }, () => this.#browse());
  }

  async stop() {
    this.#running = false;
    await Promise.all(this.#browsers);
    this.#agent.destroy();
  }

  async #browse() {
    while (this.#running) {
      await sleep(this.#random.from(0, 2 * this.#pauseMs));
      this.#users += 1;
      const uid = `user-${this.#users}`;
      const login = await this.#post('/login', { 'x-user': uid });
      if (login?.status !== 200 || this.#random.next() < 1 / 8) continue;
      await this.#logout(uid, login.cookie);
    }
  }

  async #logout(uid, cookie) {
    const started = performance.now();
    const answer = await this.#post('/logout', { cookie }, () => this.#ledger.ask(uid));
    if (answer?.status === 200 && answer.body === uid)
      this.#ledger.acknowledge(uid, performance.now() - started);
    else if (answer) this.#ledger.refused += 1;
  }

  /** At one of the apps that listen. @returns `undefined` when no whole answer came */
  async #post(path, headers, sent = () => undefined) {
    const url = this.#random.oneOf(this.#hosts.flatMap((host) => host.url ?? []));
    if (url === undefined) return undefined;
    sent();
    const call = request(url + path, {
      method: 'POST',
      agent: this.#agent,
      headers,
      timeout: ANSWER_WITHIN_MS,
    });
    call.on('timeout', () => call.destroy());
    try {
      const [response] = await once(call.end(), 'response');
      let body = '';
      for await (const chunk of response) body += chunk; // throws when the connection is cut
      return { status: response.statusCode, body, cookie: response.headers['set-cookie']?.[0].split(';')[0] };
    } catch {
      return undefined;
    }
  }
}
