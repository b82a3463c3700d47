import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ReceivedRequest } from 'debate-space-simulator';

/** Of one user: what the browser knows, and what the service has received. */
interface Account {
  /** The names of all sessions that the user may have. */
  readonly sessions: string[];
  /** When the browser sent the logout, and when it had the answer, in milliseconds. */
  requestedAt?: number;
  answeredAt?: number;
  /** Whether the app died or shut down while the user logged in again: then no browser has the new session. */
  isCutOff?: boolean;
  /** When logouts reached the service. */
  readonly arrivals: number[];
  /** Whether a logout reached the service while a session of the user lived. */
  reportedAlive?: boolean;
}

/** The requests of the browsers, the files of the sessions, and the logouts that the service received: outside the apps. */
export class Ledger {
  readonly #accounts = new Map<string, Account>();
  readonly #answers = new EventEmitter().setMaxListeners(0);
  answered = 0;
  delivered = 0;
  /** Logouts that were answered with something else than 200. */
  refused = 0;
  slowestMs = 0;

  /** @param folder of the sessions */
  constructor(readonly folder: string) {}

  account(uid: string): Account {
    const account = this.#accounts.get(uid) ?? { sessions: [], arrivals: [] };
    this.#accounts.set(uid, account);
    return account;
  }

  answer(account: Account, tookMs: number): void {
    account.answeredAt = Date.now();
    this.answered += 1;
    this.slowestMs = Math.max(this.slowestMs, Math.round(tookMs));
    this.#answers.emit('answer');
  }

  /** Resolves when so many more logouts are answered. */
  async more(logouts: number): Promise<void> {
    const target = this.answered + logouts;
    while (this.answered < target) await once(this.#answers, 'answer');
  }

  /** Call it while the service receives the request. */
  arrived({ operation, accepted, uid }: ReceivedRequest): void {
    if (operation !== 'logout' || !accepted || uid === undefined) return;
    const account = this.account(uid);
    account.arrivals.push(Date.now());
    this.delivered += 1;
    if (this.#lives(account)) account.reportedAlive = true;
  }

  /** How many logouts were answered, and have not arrived. */
  get missing(): number {
    const accounts = [...this.#accounts.values()];
    return accounts.filter(({ answeredAt, arrivals }) => answeredAt && arrivals.length === 0).length;
  }

  /** How long after this moment the last logout arrived that was sent before it, in milliseconds. */
  lateMs(moment: number): number {
    const arrivals = [...this.#accounts.values()].flatMap(({ requestedAt = Infinity, arrivals }) =>
      requestedAt < moment ? arrivals : [],
    );
    return arrivals.reduce((latest, at) => Math.max(latest, at - moment), 0);
  }

  count() {
    const accounts = [...this.#accounts.values()];
    const count = (is: (account: Account) => boolean): number => accounts.filter(is).length;
    // A user who never logged out may be reported only if a dead app has left the user without a session.
    const isInvented = (account: Account): boolean =>
      account.reportedAlive === true ||
      (account.arrivals.length > 0 &&
        account.requestedAt === undefined &&
        (!account.isCutOff || this.#lives(account)));
    return {
      answered: this.answered,
      delivered: count(({ arrivals }) => arrivals.length > 0),
      repeated: count(({ arrivals }) => arrivals.length > 1),
      invented: count(isInvented),
      lost: this.missing,
    };
  }

  /** A session that an app saved for a request which it cut off is nobody's: no browser has its cookie. */
  #lives({ sessions, isCutOff }: Account): boolean {
    const known = isCutOff ? sessions.slice(0, 1) : sessions;
    return known.some((session) => existsSync(join(this.folder, `${session}.json`)));
  }
}
