import { createHash } from 'node:crypto';

const FREE = 0n;
const REMOVED = 1n;

/**
 * A set of uids that holds none of them: 64 bits of each one's SHA-256, in a table with open addressing outside the
 * JavaScript heap; 8 to 22 bytes for each uid. Two uids are taken for one with a chance of n²/2⁶⁵ among n: one in 37
 * million for a million uids.
 */
export class UidDigests {
  #slots = new BigUint64Array(1024);
  #used = 0; // slots that are not free
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @returns whether it was not there before */
  add(uid: string): boolean {
    if (this.#used * 4 >= this.#slots.length * 3) this.#grow();
    const digest = digestOf(uid);
    const slot = this.#slotOf(digest);
    if (this.#slots[slot] === digest) return false;
    this.#slots[slot] = digest;
    this.#used += 1;
    this.#size += 1;
    return true;
  }

  /** @returns whether it was there */
  delete(uid: string): boolean {
    const digest = digestOf(uid);
    const slot = this.#slotOf(digest);
    if (this.#slots[slot] !== digest) return false;
    this.#slots[slot] = REMOVED;
    this.#size -= 1;
    return true;
  }

  /** Where it is, or the free slot where it would go. */
  #slotOf(digest: bigint): number {
    const last = this.#slots.length - 1;
    let slot = Number(digest & BigInt(last));
    while (this.#slots[slot] !== digest && this.#slots[slot] !== FREE) slot = (slot + 1) & last;
    return slot;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new BigUint64Array(before.length * 2);
    this.#used = this.#size;
    for (const digest of before) if (digest > REMOVED) this.#slots[this.#slotOf(digest)] = digest;
  }
}

function digestOf(uid: string): bigint {
  const digest = createHash('sha256').update(uid).digest().readBigUInt64LE();
  return digest > REMOVED ? digest : digest + 2n;
}
