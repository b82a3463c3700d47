import type { User } from './user.js';

/** Everybody knows this password: it works only with the simulator. */
export const DEMO_PASSWORD = 'demo';

export const DEMO_USERS: readonly User[] = [
  { uid: 'ada', name: 'Ada', role: 'member' },
  { uid: 'ben', name: 'Ben', role: 'member' },
  { uid: 'cleo', name: 'Cleo', role: 'member' },
  { uid: 'admin', name: 'Administrator', role: 'administrator' },
];
