import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto';
import type { Secret } from './secret.js';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Random bytes are made for this many texts at once, because each call of the system costs a part of a delivery. */
const IVS_AT_ONCE = 256;
/** Of a hash and of a mark: 132 bits. */
const HASH_LENGTH = 22;

/** What a hash, a sealed text or a mark says. */
export type Part = string | number | boolean | undefined;

/** What a storage key is used for. Each use has a derived key of its own. */
interface Keys {
  readonly hash: KeyObject;
  readonly seal: KeyObject;
  readonly mark: KeyObject;
  /** Of the rows that were written before there were marks. */
  readonly former: { readonly hash: KeyObject; readonly seal: KeyObject };
}

/**
 * The storage keys of one application: hashes, seals and marks its rows. Everything is bound to the application and to a
 * kind, so that nothing is valid in a row of another application or another kind. The first key writes, all keys read.
 */
export class Keyring {
  readonly #keys: readonly Keys[];
  readonly #application: string;
  #ivs = Buffer.alloc(0);

  constructor(keys: readonly Secret[], application: string) {
    this.#application = application;
    this.#keys = keys.map((key) => ({
      hash: derived(key, 'hashes'),
      seal: derived(key, 'sealed texts'),
      mark: derived(key, 'marks'),
      former: { hash: createSecretKey(key.reveal(), 'utf8'), seal: derived(key, 'sealed uids') },
    }));
  }

  /** Keyed hash under the first key: 22 characters of `[A-Za-z0-9_-]`. Rows are written with it. */
  hash(kind: string, ...parts: readonly Part[]): string {
    return this.#hmac(this.#first.hash, kind, parts);
  }

  /** The hashes under all keys, the first key first: finds rows that an older key has written. */
  hashes(kind: string, ...parts: readonly Part[]): readonly string[] {
    return this.#keys.map(({ hash }) => this.#hmac(hash, kind, parts));
  }

  /** The hashes of a user in rows that were written before there were marks: the same for logouts and erasures. */
  formerHashes(uid: string): readonly string[] {
    return this.#keys.map(({ former }) => shortHmac(former.hash, `uid\0${uid}`));
  }

  /**
   * Encrypts with AES-256-GCM, differently each time. `[A-Za-z0-9_-]` only.
   * @param row the columns of the row that keeps the text: it opens in no other row, and not after a change of them
   */
  seal(text: string, kind: string, ...row: readonly Part[]): string {
    const iv = this.#newIv();
    const cipher = createCipheriv(CIPHER, this.#first.seal, iv, { authTagLength: TAG_BYTES });
    cipher.setAAD(this.#bound(kind, row));
    const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), hidden]).toString('base64url');
  }

  /** @returns `undefined` if no key opens it, if it belongs to another row, or if it is damaged */
  open(sealed: string, kind: string, ...row: readonly Part[]): string | undefined {
    const keys = this.#keys.map(({ seal }) => seal);
    return opened(sealed, keys, this.#bound(kind, row));
  }

  /** Opens a uid that was sealed before there were marks, bound to the application, a kind and a row as well. */
  openFormer(sealed: string, kind: string, ...row: readonly Part[]): string | undefined {
    const keys = this.#keys.map(({ former }) => former.seal);
    return opened(sealed, keys, this.#bound(kind, row));
  }

  /** Vouches for columns that are readable: only a process with the key can write it. 22 characters of `[A-Za-z0-9_-]`. */
  mark(kind: string, ...row: readonly Part[]): string {
    return this.#hmac(this.#first.mark, kind, row);
  }

  /** Whether a process with one of the keys has written this mark for these columns. */
  isMarked(mark: string, kind: string, ...row: readonly Part[]): boolean {
    const given = Buffer.from(mark);
    if (given.length !== HASH_LENGTH) return false;
    return this.#keys.some((keys) => timingSafeEqual(given, Buffer.from(this.#hmac(keys.mark, kind, row))));
  }

  get #first(): Keys {
    const [first] = this.#keys;
    if (!first) throw new TypeError('A keyring needs a key');
    return first;
  }

  #hmac(key: KeyObject, kind: string, parts: readonly Part[]): string {
    return shortHmac(key, this.#bound(kind, parts));
  }

  #bound(kind: string, parts: readonly Part[]): Buffer {
    return Buffer.from(JSON.stringify([this.#application, kind, ...parts]));
  }

  #newIv(): Buffer {
    if (this.#ivs.length === 0) this.#ivs = randomBytes(IVS_AT_ONCE * IV_BYTES);
    const iv = this.#ivs.subarray(0, IV_BYTES);
    this.#ivs = this.#ivs.subarray(IV_BYTES);
    return iv;
  }
}

function opened(sealed: string, keys: readonly KeyObject[], bound: Buffer): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
  const hidden = bytes.subarray(IV_BYTES + TAG_BYTES);
  for (const key of keys) {
    try {
      const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
      decipher.setAuthTag(tag).setAAD(bound);
      return decipher.update(hidden, undefined, 'utf8') + decipher.final('utf8');
    } catch {
      // Another key may open it.
    }
  }
  return undefined;
}

const shortHmac = (key: KeyObject, text: string | Buffer): string =>
  createHmac('sha256', key).update(text).digest('base64url').slice(0, HASH_LENGTH);

/** A `KeyObject` is not printed. */
function derived(key: Secret, use: string): KeyObject {
  return createSecretKey(
    Buffer.from(hkdfSync('sha256', key.reveal(), '', `nestjs-debate-space: ${use}`, 32)),
  );
}
