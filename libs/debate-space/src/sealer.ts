import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Secret } from './secret.js';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What is sealed: each with a key of its own, so that nothing opens as what it is not. */
export type Sealed = 'session ids' | 'uids';

/** Encrypts what would tell too much to whoever reads the place that it is kept in. */
export class Sealer {
  /** Derived, so that the key that was given does nothing but what it was given for. A `KeyObject` is not printed. */
  readonly #key: KeyObject;

  constructor(key: Secret, purpose: Sealed) {
    const derived = hkdfSync('sha256', key.reveal(), '', `nestjs-debate-space: sealed ${purpose}`, 32);
    this.#key = createSecretKey(Buffer.from(derived));
  }

  /** Differs each time; `A-Z a-z 0-9 - _` only. */
  seal(text: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
    const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), hidden]).toString('base64url');
  }

  /** @returns `undefined` when it was sealed with another key or for another purpose, or is damaged: it will never be opened. */
  open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES }).setAuthTag(tag);
      return (
        decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
      );
    } catch {
      return undefined;
    }
  }
}
