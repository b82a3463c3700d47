import type { OutgoingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Browser, type Answer } from './browser.js';
import type { Host } from './host.js';
import type { Ledger } from './ledger.js';
import type { Random } from './random.js';
import type { LogoutScenario } from './scenario.js';

/**
 * Browsers that log in and out again, each time as somebody else. One in eight stays logged in; one in eight logs in again
 * as the same user, and stays logged in.
 */
export class Load {
  readonly #hosts: readonly Host[];
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #pauseMs: number;
  readonly #count: number;
  readonly #stayMs: number;
  readonly #browser = new Browser();
  #running = false;
  #browsers: Promise<void>[] = [];
  #users = 0;

  constructor(
    hosts: readonly Host[],
    ledger: Ledger,
    random: Random,
    { pauseMs = 20, browsers = 12, stayMs = 0 }: Pick<LogoutScenario, 'pauseMs' | 'browsers' | 'stayMs'>,
  ) {
    this.#hosts = hosts;
    this.#ledger = ledger;
    this.#random = random;
    this.#pauseMs = pauseMs;
    this.#count = browsers;
    this.#stayMs = stayMs;
  }

  start(): void {
    this.#running = true;
    this.#browsers = Array.from({ length: this.#count }, () => this.#browse());
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#browsers);
    this.#browser.close();
  }

  async #browse(): Promise<void> {
    while (this.#running) {
      await sleep(this.#random.from(0, 2 * this.#pauseMs));
      this.#users += 1;
      const uid = `user-${this.#users}`;
      const login = await this.#post('/login', { 'x-user': uid });
      if (login?.status !== 200) continue;
      if (this.#stayMs > 0) await sleep(this.#stayMs);
      const { cookie } = login;
      const choice = this.#random.next();
      if (choice < 1 / 8) continue;
      if (choice < 1 / 4) await this.#logInAgain(uid, cookie);
      else await this.#logout(uid, cookie);
    }
  }

  async #logInAgain(uid: string, cookie: string | undefined): Promise<void> {
    const answer = await this.#post('/login-again', { cookie }, () => {
      this.#ledger.renew(uid, false);
    });
    if (answer?.body === uid) this.#ledger.renew(uid, true);
  }

  async #logout(uid: string, cookie: string | undefined): Promise<void> {
    const started = performance.now();
    const answer = await this.#post('/logout', { cookie }, () => {
      this.#ledger.ask(uid);
    });
    if (answer?.status === 200 && answer.body === uid)
      this.#ledger.acknowledge(uid, performance.now() - started);
    else if (answer) this.#ledger.refused += 1;
  }

  /** At one of the apps that listen. @returns `undefined` when no whole answer came */
  async #post(
    path: string,
    headers: OutgoingHttpHeaders,
    sent = (): void => undefined,
  ): Promise<Answer | undefined> {
    const url = this.#random.oneOf(this.#hosts.flatMap((host) => host.url ?? []));
    if (url === undefined) return undefined;
    sent();
    return this.#browser.post(url + path, headers);
  }
}
