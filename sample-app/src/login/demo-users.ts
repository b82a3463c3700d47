export interface DemoUser {
  /** Names the user here and in the debate space. */
  readonly uid: string;
  readonly name: string;
  readonly role: 'member' | 'administrator';
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the place where passport looks for the type of its user
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- merges the type in
    interface User extends DemoUser {}
  }
}

/** One for all, and readable: these are demo logins. A real app keeps a slow hash per user. */
export const DEMO_PASSWORD = 'demo';

export const DEMO_USERS: readonly DemoUser[] = [
  { uid: 'ada', name: 'Ada', role: 'member' },
  { uid: 'ben', name: 'Ben', role: 'member' },
  { uid: 'cleo', name: 'Cleo', role: 'member' },
  { uid: 'admin', name: 'Administrator', role: 'administrator' },
];

export function demoUser(uid: string): DemoUser | undefined {
  return DEMO_USERS.find((user) => user.uid === uid);
}
