type MaybePromise<T> = T | Promise<T>;

/** A session that is nobody's to claim any more: after this long without a claim it is forgotten, unreported. */
export const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60 * 1000;

/** A live session of a user, as far as all instances of an application must know of it. */
export interface IndexedSession {
  /** Keyed hash of the session id: names the session. */
  readonly hash: string;
  /** Keyed hash of the uid: whose it is. */
  readonly uidHash: string;
  /** When it runs out, by the host's clock: milliseconds since 1970, or `Infinity` when it never does. Never `NaN`. */
  readonly expiresAt: number;
  /** The session id and the uid, encrypted: whoever claims the session finds the real one in the host's store by it. */
  readonly sealed: string;
}

/** What {@link SessionIndex.remove} found. */
export interface SessionRemoval {
  /** Whether it was there, with this user. Of all who remove a session, over all instances, one is told `true`. */
  readonly removed: boolean;
  /** Whether the user has another session that has not run out, as of the same moment. */
  readonly others: boolean;
}

/**
 * Which sessions of which users are alive, over all instances of an application. Engines answer synchronously where
 * they can. A promise rejects when the engine cannot be reached; then nothing is known of what was asked, and the
 * caller may ask again.
 *
 * Sessions leave by `remove`. Those that run out are claimed by somebody, who looks at the real session in the host's
 * store: it is alive after all – `put` it with its new time – or it is gone, and who is told `removed: true` reports it.
 * A session that ran out and that nobody claims is forgotten after {@link FORGOTTEN_AFTER_MS}.
 */
export interface SessionIndex {
  /** Whether what is noted outlives the process. */
  readonly durable: boolean;

  /** Notes a live session. What was known under the same hash – time, user, a claim – is replaced. */
  put(session: IndexedSession): MaybePromise<void>;

  /** The same, but only for a session that is there with this user: whoever says so may not have heard of its end. */
  renew(session: IndexedSession): MaybePromise<void>;

  /**
   * Forgets a session that has ended; claimed ones too. A session that is noted with another user stays. Of the last
   * sessions of a user that end at the same time exactly one is told that there are no others.
   */
  remove(hash: string, uidHash: string): MaybePromise<SessionRemoval>;

  /**
   * Takes at most `limit` sessions that have run out, the longest ago first. Nobody else gets them for `leaseMs`
   * milliseconds; those that are neither removed nor put again by then – their claimer died – may be claimed anew, after
   * what ran out before the end of the lease.
   */
  claimExpired(limit: number, leaseMs: number): MaybePromise<readonly IndexedSession[]>;
}

/** What makes the session index of one application. */
export interface SessionIndexFactory {
  /** @param namespace The application's name and a fingerprint of its key: others know nothing of its sessions. */
  open(namespace: string): MaybePromise<SessionIndex>;
}
