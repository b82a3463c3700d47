import type { ConfigService } from '@nestjs/config';
import { StartError } from '../start-error.js';
import { isPasswordHash } from './password-hash.js';
import type { User } from './user.js';

export interface Account extends User {
  readonly passwordHash: string;
}

const ROLES = { ADMINISTRATORS: 'administrator', MEMBERS: 'member' } as const;
type Variable = keyof typeof ROLES;

const HOW =
  'hint: a login is "<user name>:<password hash>"; several are separated by spaces. ' +
  '"node sample-app/dist/hash-password.js" asks for a password and prints its hash.';

/** The logins of ADMINISTRATORS and MEMBERS. @throws {StartError} which never repeats a value: it may be a password */
export function accountsFrom(config: ConfigService): Account[] {
  const variables = Object.keys(ROLES) as Variable[];
  const accounts = variables.flatMap((variable) => logins(variable, config.get<string>(variable) ?? ''));
  if (accounts.length === 0) {
    throw new StartError(
      'Nobody can log in: set ADMINISTRATORS, MEMBERS or both. The demo logins work only with a simulator on this machine ' +
        `("npm start").\n${HOW}`,
    );
  }
  const names = accounts.map(({ uid }) => uid);
  if (new Set(names).size < names.length) {
    throw new StartError(`ADMINISTRATORS and MEMBERS name a user twice. Remove one of the two logins.`);
  }
  return accounts;
}

function logins(variable: Variable, value: string): Account[] {
  const entries = value.split(/\s+/).filter((entry) => entry !== '');
  return entries.map((entry, index) => {
    const [, uid, passwordHash = ''] = /^(.+):(.*)$/.exec(entry) ?? [];
    if (uid !== undefined && isPasswordHash(passwordHash)) {
      return { uid, name: uid, role: ROLES[variable], passwordHash };
    }
    throw new StartError(`Login ${index + 1} of ${variable} has no user name or no password hash.\n${HOW}`);
  });
}
