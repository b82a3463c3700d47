import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { isLoopback } from '../loopback.js';
import { accountsFrom, type Account } from './accounts-from-environment.js';
import { DEMO_PASSWORD, DEMO_USERS } from './demo-users.js';
import { isPasswordOf } from './password-hash.js';
import type { User } from './user.js';

/** Of `DEMO_PASSWORD`, as cheap as the password is known. */
const DEMO_HASH = 'scrypt.10.8.1.c2FtcGxlLWFwcCwgZGVtbw.Y6AXMMqwp72vUIql4R2PU_XcRnasAtGTnmPLqVILGf4';

/** Who may log in: the demo users while the debate space is a simulator, else the users of the environment. */
@Injectable()
export class Accounts {
  /** The login page shows them. */
  readonly demoLogins: { readonly users: readonly User[]; readonly password: string } | undefined;
  readonly #accounts: ReadonlyMap<string, Account>;

  /** @throws {StartError} when the environment names nobody who may log in */
  constructor(config: ConfigService) {
    const authUrl = config.get<string>('DEBATE_SPACE_AUTH_URL');
    const isDemo = isSimulator(authUrl, config.get<string>('SIMULATOR_URL'));
    this.demoLogins = isDemo ? { users: DEMO_USERS, password: DEMO_PASSWORD } : undefined;
    const accounts = isDemo
      ? DEMO_USERS.map((user) => ({ ...user, passwordHash: DEMO_HASH }))
      : accountsFrom(config);
    this.#accounts = new Map(accounts.map((account) => [account.uid, account]));
  }

  find(uid: string): User | undefined {
    const account = this.#accounts.get(uid);
    return account && { uid, name: account.name, role: account.role };
  }

  /** An unknown user name takes as long as a wrong password. */
  async authenticate(uid: string, password: string): Promise<User | undefined> {
    const [anybody] = this.#accounts.values();
    const hash = (this.#accounts.get(uid) ?? anybody)?.passwordHash;
    const isRight = hash !== undefined && (await isPasswordOf(hash, password));
    return isRight ? this.find(uid) : undefined;
  }
}

/** A well-known password is for a simulator on this machine alone, whatever SIMULATOR_URL says of a real service. */
function isSimulator(authUrl = '', simulatorUrl = ''): boolean {
  if (!URL.canParse(authUrl) || !URL.canParse(simulatorUrl)) return false;
  const { origin, hostname } = new URL(authUrl);
  return origin === new URL(simulatorUrl).origin && isLoopback(hostname);
}
