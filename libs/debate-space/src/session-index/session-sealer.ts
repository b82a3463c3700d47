import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Secret } from '../secret.js';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts session ids for the index: who reads the index cannot take over a session. */
export class SessionSealer {
  /** Derived, so that the secret key itself only signs. A `KeyObject` is not printed. */
  readonly #key: KeyObject;

  constructor(secretKey: Secret) {
    const key = hkdfSync('sha256', secretKey.reveal(), '', 'nestjs-debate-space: sealed session ids', 32);
    this.#key = createSecretKey(Buffer.from(key));
  }

  /** Differs each time; `A-Z a-z 0-9 - _` only. */
  seal(sid: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
    const text = Buffer.concat([cipher.update(sid, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
  }

  /** @returns `undefined` when it was sealed with another secret key, or is damaged: it will never be opened. */
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
