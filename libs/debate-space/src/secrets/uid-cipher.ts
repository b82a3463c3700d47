import { Sealer } from './sealer.js';
import type { Secret } from './secret.js';
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/** The record that a uid is sealed for: its ciphertext opens in no other, and not in this one when it is changed. */
interface SealedFor {
  readonly kind: 'logout' | 'erasure';
  readonly id: string;
  /** A hash of the uid, which stands in the record. */
  readonly uidHash: string;
  /** Of an erasure. */
  readonly mode?: string;
}

/** Hashes and encrypts the uids that a storage keeps. */
export type UidCipher = ReturnType<typeof uidCipher>;

/**
 * Hashes with HMAC-SHA-256 and encrypts with AES-256-GCM. A ciphertext is bound to the application and to what its record
 * asks for: whoever may write to the storage, without the key, cannot turn one logout or erasure into another.
 * @param keys the first one hashes and seals, all of them open
 */
export function uidCipher(keys: readonly Secret[], namespace: string) {
  const secrets = keys.map((key) => key.reveal());
  const sealer = new Sealer(secrets, 'nestjs-debate-space: sealed uids');
  const hashKeys = keys.map(hashKey);
  const hashes = (uid: string): readonly string[] => hashKeys.map((key) => keyedHash(key, 'uid', uid));
  const textOf = ({ kind, id, uidHash, mode }: SealedFor): string =>
    JSON.stringify([namespace, kind, id, uidHash, mode]);
  return {
    /** Keyed hash under the first key: 22 characters of `[A-Za-z0-9_-]`. What is written is found by it. */
    hash: (uid: string): string => (hashKeys[0] ? keyedHash(hashKeys[0], 'uid', uid) : ''),

    /** The hashes under all keys, that of the first one first: what an older key wrote is found by one of them. */
    hashes,

    /** Encrypts under the first key, differently each time. `[A-Za-z0-9_-]` only. */
    seal: (uid: string, record: SealedFor): string => sealer.seal(uid, textOf(record)),

    /** @returns `undefined` when no key opens it, when it belongs to another record, or when it is damaged */
    open: (sealed: string, record: SealedFor): string | undefined => {
      const uid = sealer.open(sealed, textOf(record));
      return uid !== undefined && hashes(uid).includes(record.uidHash) ? uid : undefined;
    },
  };
}

/** Keeps the hashes of one thing from being compared with those of another. */
export type Hashed = 'session' | 'uid';

/** Made once: a key that is a string costs each hash twice the time. */
export const hashKey = (key: Secret): KeyObject => createSecretKey(key.reveal(), 'utf8');

/** Tells values apart without showing them; anyone who lacks the key can neither guess nor test one against it. */
export function keyedHash(key: KeyObject, of: Hashed, value: string): string {
  return createHmac('sha256', key).update(`${of}\0${value}`).digest('base64url').slice(0, 22);
}
