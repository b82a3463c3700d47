import { keyedHash } from '../keyed-hash.js';
import { Sealer } from '../sealer.js';
import type { Secret } from '../secret.js';

/** Hides session ids and uids in the registry: who reads it can neither take over a session nor learn who has one. */
export class SessionSeal {
  readonly #key: Secret;
  readonly #sealer: Sealer;

  constructor(key: Secret) {
    this.#key = key;
    this.#sealer = new Sealer([key], 'session ids');
  }

  hash(sid: string): string {
    return keyedHash(this.#key, 'session', sid);
  }

  uidHash(uid: string): string {
    return keyedHash(this.#key, 'uid', uid);
  }

  seal(sid: string, uid: string): string {
    return this.#sealer.seal(`${uid}\0${sid}`, ''); // no uid has control characters
  }

  /** @returns `undefined` when it was sealed with another storage key, or is damaged: it will never be opened */
  open(sealed: string): { readonly sid: string; readonly uid: string } | undefined {
    const opened = this.#sealer.open(sealed, '') ?? '';
    const end = opened.indexOf('\0');
    return end < 0 ? undefined : { sid: opened.slice(end + 1), uid: opened.slice(0, end) };
  }
}
