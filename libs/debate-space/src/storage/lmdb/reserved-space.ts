import { appendFileSync, statSync } from 'node:fs';
import type { StorageValues } from '../storage.js';

/** What a row may need besides its text: copies of the pages that lead to it, the halves of one that is full. */
const PER_ROW = 8 * 1024;
/** What commits have in common: the tops of the trees, the list of free pages. */
const IN_COMMON = 512 * 1024;
/** New records leave so much to the work on those that are there; the file grows by no less at a time. */
const SPARE = 1024 * 1024;

/** What a commit may need at most. A character takes three bytes of UTF-8 or less. */
export const bytesFor = (changes: StorageValues): number =>
  [...changes.values()].reduce((bytes, text) => bytes + PER_ROW + (text ?? '').length * 3, 0);

/**
 * Keeps room at the end of the data file that the disk has given already. LMDB must never meet a full disk itself: 3.5.6
 * then writes its message past the end of a buffer, and the process aborts. Zeros are only ever appended, so that they
 * cannot overwrite what another process has written meanwhile.
 */
export class ReservedSpace {
  readonly #file: string;
  #size = 0; // never shrinks

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * @param used bytes from the beginning that hold pages
   * @param bytes what the open commits may need
   * @param isNew whether the last of them adds records
   * @throws what the file system says, when it has no room
   */
  ensure(used: number, bytes: number, isNew: boolean): void {
    const least = used + IN_COMMON + bytes;
    if (this.#size < least + SPARE) this.#size = statSync(this.#file).size;
    const missing = least + SPARE - this.#size;
    if (missing <= 0) return;
    try {
      appendFileSync(this.#file, Buffer.alloc(Math.max(SPARE, missing)));
    } catch (error) {
      if (isNew || statSync(this.#file).size < least) throw error;
    }
  }
}
