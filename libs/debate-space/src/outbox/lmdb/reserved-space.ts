import { appendFileSync, statSync } from 'node:fs';

/** What one change may need at most: a few pages of several trees, copied. */
const PER_CHANGE = 32 * 1024;
/** What changes have in common: the tops of the trees, the list of free pages. */
const IN_COMMON = 512 * 1024;
/** New entries leave so much to the delivery of those that are there already. */
const FOR_DELIVERY = 1024 * 1024;
/** The file grows by no less at a time. */
const STEP = 1024 * 1024;

/**
 * Keeps room at the end of the data file that the disk has given already. LMDB must never meet a full disk itself: 3.5.6
 * then writes its message past the end of a buffer, and the process aborts. Zeros are only ever appended, so that they
 * cannot overwrite what another process has written meanwhile.
 */
export class ReservedSpace {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * @param used bytes from the beginning that hold pages
   * @param changes how many are under way, this one included
   * @param isNew whether it brings an entry
   * @throws what the file system says, when it has no room
   */
  ensure(used: number, changes: number, isNew: boolean): void {
    const least = IN_COMMON + changes * PER_CHANGE;
    const wanted = least + FOR_DELIVERY;
    const missing = wanted - (statSync(this.#file).size - used);
    if (missing <= 0) return;
    try {
      appendFileSync(this.#file, Buffer.alloc(Math.max(STEP, missing)));
    } catch (error) {
      if (isNew || statSync(this.#file).size - used < least) throw error;
    }
  }
}
