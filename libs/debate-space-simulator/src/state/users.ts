import { EventEmitter } from 'node:events';

/** The service's own idea of the time: this machine's clock plus an offset that tests may change. */
export class ServiceClock {
  /** @param offsetSeconds the service's clock minus this machine's, in seconds */
  constructor(public offsetSeconds: number) {}

  /** Milliseconds since the epoch. */
  nowMs(): number {
    return Date.now() + this.offsetSeconds * 1000;
  }

  /** Seconds since the epoch, with fractions. */
  nowSeconds(): number {
    return this.nowMs() / 1000;
  }
}

/** What the service is told when a user registers. */
export interface NewUser {
  /** Unique identifier defined by the client application (section 2). */
  uid: string;
  first_name?: string;
  last_name?: string;
  email?: string;
  image_url?: string;
  /** How many contributions the user has made. Default 0. */
  contributions?: number;
}

/** A registered user. The personal fields, `uid` among them, are null once anonymized (section 4.2). */
export interface SimulatedUser {
  /** The service's own number; it outlives anonymization. */
  readonly id: number;
  readonly uid: string | null;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly email: string | null;
  readonly image_url: string | null;
  readonly contributions: number;
  /** ISO 8601, by the service's clock. */
  readonly created_at: string;
}

/** First name and surname in one, or null when neither is known. */
export function fullName(user: SimulatedUser): string | null {
  const parts = [user.first_name, user.last_name].filter((part) => part !== null && part !== '');
  return parts.length > 0 ? parts.join(' ') : null;
}

/** The uid belonged to a deleted user. Deletion is final (section 1), so it is refused forever. */
export class DeletedUidError extends Error {
  override readonly name = 'DeletedUidError';
  readonly code = 'DELETED_UID';

  constructor(readonly uid: string) {
    super(`The user with uid ${JSON.stringify(uid)} was deleted; deletion is final. Use another uid.`);
  }
}

/** The uid belongs to a registered user already. */
export class DuplicateUidError extends Error {
  override readonly name = 'DuplicateUidError';
  readonly code = 'DUPLICATE_UID';

  constructor(readonly uid: string) {
    super(`A user with uid ${JSON.stringify(uid)} is registered already. Use get() to read it.`);
  }
}

/**
 * The users registered in the service (section 2).
 *
 * Emits `removed` with the uid after an anonymization or a deletion, and `change` after every change.
 */
export class SimulatedUsers extends EventEmitter<{ removed: [uid: string]; change: [] }> {
  readonly #clock: ServiceClock;
  readonly #byId = new Map<number, SimulatedUser>();
  readonly #idByUid = new Map<string, number>();
  readonly #deletedUids = new Set<string>();
  #lastId = 0;
  /** Until the next change, so that a page costs no more than its users. */
  #inOrder: readonly SimulatedUser[] | undefined;

  constructor(clock: ServiceClock) {
    super();
    this.#clock = clock;
  }

  /** Registered users, the anonymized ones included. */
  get count(): number {
    return this.#byId.size;
  }

  /**
   * Registers a user.
   * @throws DeletedUidError, DuplicateUidError, or TypeError for an empty uid
   */
  add(user: NewUser): SimulatedUser {
    if (user.uid === '') throw new TypeError('A uid must not be empty.');
    if (this.#deletedUids.has(user.uid)) throw new DeletedUidError(user.uid);
    if (this.has(user.uid)) throw new DuplicateUidError(user.uid);
    const registered: SimulatedUser = Object.freeze({
      id: ++this.#lastId,
      uid: user.uid,
      first_name: user.first_name ?? null,
      last_name: user.last_name ?? null,
      email: user.email ?? null,
      image_url: user.image_url ?? null,
      contributions: user.contributions ?? 0,
      created_at: new Date(this.#clock.nowMs()).toISOString(),
    });
    this.#byId.set(registered.id, registered);
    this.#idByUid.set(user.uid, registered.id);
    this.#inOrder = undefined;
    this.emit('change');
    return registered;
  }

  get(uid: string): SimulatedUser | undefined {
    const id = this.#idByUid.get(uid);
    return id === undefined ? undefined : this.#byId.get(id);
  }

  has(uid: string): boolean {
    return this.#idByUid.has(uid);
  }

  /** Every user in the order of registration, the anonymized ones included. */
  all(): SimulatedUser[] {
    return this.slice(0);
  }

  /** Those of all between two positions, as of an array. */
  slice(start: number, end?: number): SimulatedUser[] {
    this.#inOrder ??= [...this.#byId.values()];
    return this.#inOrder.slice(start, end);
  }

  /** Whether a user with this uid was deleted earlier. */
  wasDeleted(uid: string): boolean {
    return this.#deletedUids.has(uid);
  }

  /** Erases the personal fields and the uid, keeps the contributions (section 4.2). False: unknown uid. */
  anonymize(uid: string): boolean {
    const user = this.get(uid);
    if (user === undefined) return false;
    const erased = { uid: null, first_name: null, last_name: null, email: null, image_url: null };
    this.#byId.set(user.id, Object.freeze({ ...user, ...erased }));
    this.#remove(uid);
    return true;
  }

  /** Removes the user with everything (section 4.3); the uid is refused from then on. False: unknown uid. */
  delete(uid: string): boolean {
    const user = this.get(uid);
    if (user === undefined) return false;
    this.#byId.delete(user.id);
    this.#deletedUids.add(uid);
    this.#remove(uid);
    return true;
  }

  #remove(uid: string): void {
    this.#idByUid.delete(uid);
    this.#inOrder = undefined;
    this.emit('removed', uid);
    this.emit('change');
  }
}
