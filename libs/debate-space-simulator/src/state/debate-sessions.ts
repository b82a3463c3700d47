import { EventEmitter } from 'node:events';
import type { NewUser, SimulatedUsers } from './users.js';

/** A debate session began or ended. */
export interface DebateSessionChange {
  uid: string;
  signedIn: boolean;
}

/**
 * Who is signed in to the debate. A session ends with a backchannel logout (section 4.5), and with the
 * anonymization or deletion of its user. Emits `change` whenever a session begins or ends.
 */
export class DebateSessions extends EventEmitter<{ change: [DebateSessionChange] }> {
  readonly #users: SimulatedUsers;
  readonly #signedIn = new Set<string>();

  constructor(users: SimulatedUsers) {
    super();
    this.#users = users;
    users.on('removed', (uid) => {
      this.signOut(uid);
    });
  }

  /**
   * Signs a user in, and registers an unknown one first, as single sign-on does.
   * @throws DeletedUidError when the uid belonged to a deleted user
   */
  signIn(uid: string, profile: Omit<NewUser, 'uid'> = {}): void {
    if (!this.#users.has(uid)) this.#users.add({ ...profile, uid });
    if (this.#signedIn.has(uid)) return;
    this.#signedIn.add(uid);
    this.emit('change', { uid, signedIn: true });
  }

  /** Ends the session of a user. False: there was none. */
  signOut(uid: string): boolean {
    if (!this.#signedIn.delete(uid)) return false;
    this.emit('change', { uid, signedIn: false });
    return true;
  }

  isSignedIn(uid: string): boolean {
    return this.#signedIn.has(uid);
  }

  /** The uids that are signed in, in the order in which they came. */
  signedIn(): string[] {
    return [...this.#signedIn];
  }
}
