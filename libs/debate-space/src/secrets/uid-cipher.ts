import { keyedHash } from './keyed-hash.js';
import { Sealer } from './sealer.js';
import type { Secret } from './secret.js';

/** The kind of record that a uid is sealed for. */
export type SealedRecord = 'logout' | 'erasure';

/** Hashes and encrypts the uids that a storage keeps. */
export interface UidCipher {
  /** Keyed hash under the first key: 22 characters of `[A-Za-z0-9_-]`. What is written is found by it. */
  hash(uid: string): string;

  /** The hashes under all keys, that of the first one first: what an older key wrote is found by one of them. */
  hashes(uid: string): readonly string[];

  /**
   * Encrypts under the first key, differently each time. `[A-Za-z0-9_-]` only.
   * @param uidHash a hash of the uid, which stands in the record
   */
  seal(uid: string, record: SealedRecord, uidHash: string): string;

  /** @returns `undefined` when no key opens it, when it belongs to another record, or when it is damaged */
  open(sealed: string, record: SealedRecord, uidHash: string): string | undefined;
}

/**
 * Hashes with HMAC-SHA-256 and encrypts with AES-256-GCM. A ciphertext is bound to the application, the kind of its record
 * and the uid hash in it: somebody who may write to the storage cannot move one user's uid into the record of another.
 * @param keys the first one hashes and seals, all of them open
 */
export function uidCipher(keys: readonly Secret[], namespace: string): UidCipher {
  const sealer = new Sealer(keys, 'uids');
  const hashes = (uid: string): readonly string[] => keys.map((key) => keyedHash(key, 'uid', uid));
  const recordOf = (kind: SealedRecord, uidHash: string): string => `${namespace}\0${kind}\0${uidHash}`;
  return {
    hash: (uid) => hashes(uid)[0] ?? '',
    hashes,
    seal: (uid, kind, uidHash) => sealer.seal(uid, recordOf(kind, uidHash)),
    open: (sealed, kind, uidHash) => {
      const uid = sealer.open(sealed, recordOf(kind, uidHash));
      return uid !== undefined && hashes(uid).includes(uidHash) ? uid : undefined;
    },
  };
}

/** For a storage in the memory of the process, where a uid needs no encryption. */
export function plainUidCipher(cipher: UidCipher): UidCipher {
  return { ...cipher, seal: (uid) => uid, open: (uid) => uid };
}
