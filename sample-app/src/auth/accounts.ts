import { verify } from '@node-rs/argon2';
import { Injectable } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import type { Environment } from '../environment.js';

export interface User {
  /** The name of the user in this app and in the debate space. */
  readonly uid: string;
  readonly role: 'member' | 'administrator';
}

interface Account extends User {
  readonly passwordHash: string;
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- passport takes the type of its user from here
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- merges the type into that of passport
    interface User extends AppUser {}
  }
}
type AppUser = User;

/** The users who can log in, from the environment. A real app has them in its database. */
@Injectable()
export class Accounts {
  readonly #accounts: ReadonlyMap<string, Account>;

  constructor(config: ConfigService<Environment, true>) {
    const accounts = [
      ...accountsFrom(config.get<string>('ADMINISTRATORS'), 'administrator'),
      ...accountsFrom(config.get<string>('MEMBERS'), 'member'),
    ];
    this.#accounts = new Map(accounts.map((account) => [account.uid, account]));
  }

  find(uid: string): User | undefined {
    const account = this.#accounts.get(uid);
    return account && { uid, role: account.role };
  }

  async authenticate(uid: string, password: string): Promise<User | undefined> {
    const [any] = this.#accounts.values(); // an unknown user name takes as long as a wrong password
    const account = this.#accounts.get(uid) ?? any;
    const isRight = account !== undefined && (await verify(account.passwordHash, password));
    return isRight ? this.find(uid) : undefined;
  }
}

/** @param logins `<user name>:<password hash>`, separated by spaces */
function accountsFrom(logins: string, role: User['role']): Account[] {
  return logins
    .split(/\s+/)
    .filter((login) => login !== '')
    .map((login) => {
      const [, uid, passwordHash] = /^(.+):(\$argon2id\$.+)$/.exec(login) ?? [];
      if (uid !== undefined && passwordHash !== undefined) return { uid, role, passwordHash };
      throw new Error('A login of ADMINISTRATORS or MEMBERS is not "<user name>:<argon2id hash>".');
    });
}
