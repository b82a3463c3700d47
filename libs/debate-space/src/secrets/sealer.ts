import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Random bytes are made for so many texts at once: a call of the system for each is a part of each delivery. */
const IVS_AT_ONCE = 256;

/** Encrypts what would tell too much to anyone who reads the place that it is kept in: AES-256-GCM. */
export class Sealer {
  /** Derived, so that the keys that were given do nothing but what they were given for. A `KeyObject` is not printed. */
  readonly #keys: readonly KeyObject[];
  #ivs = Buffer.alloc(0);

  /**
   * @param keys the first one seals, all of them open
   * @param purpose what is sealed: each purpose has a key of its own, so that nothing opens as what it is not
   */
  constructor(keys: readonly string[], purpose: string) {
    this.#keys = keys.map((key) => createSecretKey(Buffer.from(hkdfSync('sha256', key, '', purpose, 32))));
  }

  /**
   * Differs each time; `A-Z a-z 0-9 - _` only.
   * @param record names the record that the text belongs to: it cannot be opened as a part of another
   */
  seal(text: string, record: string): string {
    const [key] = this.#keys;
    if (!key) throw new TypeError('A sealer needs a key');
    const iv = this.#newIv();
    const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(record));
    const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), hidden]).toString('base64url');
  }

  #newIv(): Buffer {
    if (this.#ivs.length === 0) this.#ivs = randomBytes(IVS_AT_ONCE * IV_BYTES);
    const iv = this.#ivs.subarray(0, IV_BYTES);
    this.#ivs = this.#ivs.subarray(IV_BYTES);
    return iv;
  }

  /** @returns `undefined` when no key opens it, when it belongs to another record or purpose, or when it is damaged */
  open(sealed: string, record: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
    const hidden = bytes.subarray(IV_BYTES + TAG_BYTES);
    for (const key of this.#keys) {
      try {
        const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
        decipher.setAuthTag(tag).setAAD(Buffer.from(record));
        return decipher.update(hidden, undefined, 'utf8') + decipher.final('utf8');
      } catch {
        // Another key may open it.
      }
    }
    return undefined;
  }
}
