import { appendFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { StorageValues } from '../storage.js';

/** What a row may need besides its text: copies of the pages that lead to it, the halves of one that is full. */
const PER_ROW = 8 * 1024;
/** What commits have in common: the tops of the trees, the list of free pages. */
const IN_COMMON = 512 * 1024;
/** New records leave so much to the work on those that are there; the file grows by no less at a time. */
const SPARE = 1024 * 1024;

/**
 * Keeps room at the end of the data file that the disk has given already. LMDB must never meet a full disk itself: 3.5.6
 * then writes its message past the end of a buffer, and the process aborts. Zeros are only ever appended, so that they
 * cannot overwrite what another process has written meanwhile.
 */
export class ReservedSpace {
  readonly #file: string;
  #size = 0; // never shrinks
  #taken = 0;

  constructor(folder: string) {
    this.#file = join(folder, 'data.mdb');
  }

  /**
   * @param used bytes from the beginning that hold pages
   * @param changes of a commit, until the function that is returned gives their room back
   * @param isNew whether the commit adds records
   * @throws what the file system says, when it has no room
   */
  take(used: number, changes: StorageValues, isNew: boolean): () => void {
    // A character takes three bytes of UTF-8 or less.
    const bytes = [...changes.values()].reduce((sum, text = '') => sum + PER_ROW + text.length * 3, 0);
    const least = used + IN_COMMON + this.#taken + bytes;
    if (this.#size < least + SPARE) this.#size = statSync(this.#file).size;
    const missing = least + SPARE - this.#size;
    try {
      if (missing > 0) appendFileSync(this.#file, Buffer.alloc(Math.max(SPARE, missing)));
    } catch (error) {
      if (isNew || statSync(this.#file).size < least) throw error;
    }
    this.#taken += bytes;
    return () => void (this.#taken -= bytes);
  }
}
