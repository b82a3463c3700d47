import type { BeforeErase } from 'nestjs-debate-space';
import type { Accounts } from '../login/accounts.js';

/** Runs immediately before each erasure. A real app looks for a legal hold here, for example. */
export function keepAdministrators(accounts: Accounts): BeforeErase {
  return ({ uid }) =>
    accounts.find(uid)?.role === 'administrator' ? { veto: 'administrators are not erased' } : undefined;
}
