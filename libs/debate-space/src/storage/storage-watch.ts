import type { Emit } from '../events.js';
import type { Storage } from './storage.js';

const LOOK_MS = 1_500;

/**
 * Whether the storage takes what is written, and still has what it took. Looks every 1.5 s; a look that fails says nothing,
 * because whoever needs the storage reports that it does not answer.
 */
export class StorageWatch {
  #birth: string | undefined;
  #isDegraded = false;
  #isEmptied = false;
  #isLooking = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly storage: Storage,
    private readonly place: string | undefined,
    private readonly emit: Emit,
  ) {}

  /** Whether the storage did not take the last logouts: they wait in memory, and a crash would lose them. */
  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** Whether what the storage had taken is gone. Stays so until the process ends. */
  get isEmptied(): boolean {
    return this.#isEmptied;
  }

  start(): void {
    const look = (): void => void this.look();
    this.#timer ??= setInterval(look, LOOK_MS).unref();
    look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The storage has not taken a logout. */
  degrade(cause: string): void {
    if (this.#isDegraded) return;
    this.#isDegraded = true;
    this.emit({ type: 'storage-degraded', cause });
  }

  /** Never rejects. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const birth = await this.storage.birth();
      if (this.#birth !== undefined && birth !== this.#birth && !this.#isEmptied) {
        this.#isEmptied = true;
        this.emit({ type: 'storage-emptied', place: this.place });
      }
      this.#birth ??= birth;
      if (this.#isDegraded) await this.#recover();
    } catch {
      // Still away.
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * Neither call changes anything that counts. A full disk or a read-only server refuses to write the pause; the other call
   * needs the table of the logouts.
   */
  async #recover(): Promise<void> {
    await this.storage.pause('logout', 0);
    await this.storage.supersedeLogouts(['-']);
    this.#isDegraded = false;
    this.emit({ type: 'storage-recovered' });
  }
}
