import { keyedHash } from '../keyed-hash.js';
import { Sealer } from '../sealer.js';
import type { Secret } from '../secret.js';
import type { ExpiredSession, SessionName } from './session-registry.js';

/** Hides session ids and uids in the registry: who reads it can neither take over a session nor learn who has one. */
export class SessionSeal {
  readonly #key: Secret;
  readonly #formerKeys: readonly Secret[];
  readonly #sealer: Sealer;

  /** @param keys the first one seals and hashes, all of them open and find */
  constructor(keys: readonly Secret[]) {
    const [key, ...formerKeys] = keys;
    if (!key) throw new TypeError('A session seal needs a key');
    this.#key = key;
    this.#formerKeys = formerKeys;
    this.#sealer = new Sealer(keys, 'session ids');
  }

  name(sid: string, uid: string): SessionName {
    return nameUnder(this.#key, sid, uid);
  }

  /** The names under which the session may be registered that was last used before the key changed. */
  formerNames(sid: string, uid: string): readonly SessionName[] {
    return this.#formerKeys.map((key) => nameUnder(key, sid, uid));
  }

  seal(sid: string, uid: string): ExpiredSession {
    const name = this.name(sid, uid);
    return { ...name, sealed: this.#sealer.seal(`${uid}\0${sid}`, recordOf(name)) }; // no uid has control characters
  }

  /** @returns `undefined` when no key opens it, when it belongs to another record, or when it is damaged */
  open(session: ExpiredSession): { readonly sid: string; readonly uid: string } | undefined {
    const opened = this.#sealer.open(session.sealed, recordOf(session)) ?? '';
    const end = opened.indexOf('\0');
    return end < 0 ? undefined : { sid: opened.slice(end + 1), uid: opened.slice(0, end) };
  }
}

const nameUnder = (key: Secret, sid: string, uid: string): SessionName => ({
  hash: keyedHash(key, 'session', sid),
  uidHash: keyedHash(key, 'uid', uid),
});

/** A ciphertext is bound to the hashes of its record. */
const recordOf = ({ hash, uidHash }: SessionName): string => `${hash}\0${uidHash}`;
