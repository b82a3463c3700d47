/** A user of this app. */
export interface User {
  /** Names the user in this app and in the debate space. */
  readonly uid: string;
  readonly name: string;
  readonly role: 'member' | 'administrator';
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the place where passport looks for the type of its user
  namespace Express {
    // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- merges the type in
    interface User extends AppUser {}
  }
}

type AppUser = User;
