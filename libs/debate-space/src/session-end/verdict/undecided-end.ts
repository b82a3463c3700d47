import { randomUUID } from 'node:crypto';
import type { EndReason } from '../../events.js';
import type { LogoutEntry } from '../../logout/logout.js';
import { keyedHash } from '../../secrets/keyed-hash.js';
import type { Secret } from '../../secrets/secret.js';

/** An end of which nobody knows yet whether it is one. */
export class UndecidedEnd {
  readonly heldAt = performance.now(); // the machine's clock may be put back
  readonly #endedAt = Date.now();
  #entry: LogoutEntry | undefined;
  /** Whether the queue has been asked to hold it. */
  isStored = false;

  /** @param isOpen whether its request may still decide it */
  constructor(
    private readonly uid: string,
    private readonly reason: EndReason,
    private readonly sid: string | undefined,
    readonly isOpen: () => boolean,
    private readonly hashKey: Secret,
  ) {}

  /** Made when it is needed: a response may be waiting. */
  get entry(): LogoutEntry {
    return (this.#entry ??= newEntry({
      uid: this.uid,
      reason: this.reason,
      endedAt: this.#endedAt,
      sessionHash: this.sid === undefined ? undefined : keyedHash(this.hashKey, 'session', this.sid),
    }));
  }
}

/** The id begins with the moment, so that ids sort by age. */
export function newEntry(end: Omit<LogoutEntry, 'id'>): LogoutEntry {
  return { ...end, id: `${String(end.endedAt).padStart(15, '0')}-${randomUUID()}` };
}
