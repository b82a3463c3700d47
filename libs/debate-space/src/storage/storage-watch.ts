import { Periodic } from '../async/background.js';
import { StorageError } from '../errors.js';
import type { Emit } from '../events.js';
import { LateStorage } from './late-storage.js';
import type { OpenStorage } from './engine.js';

const LOOK_MS = 1_500;
/** How long a degraded storage is still tried with each logout: it may have been slow for a moment only. */
const AWAY_MS = 1_000;
/** How long a storage is left alone that has refused to be opened: each try runs the whole probe. */
const REFUSED_MS = 60_000;

/**
 * Whether the storage takes what is written, and still has what it took. Looks every 1.5 s; a look that fails says nothing,
 * because whoever needs the storage reports that it does not answer.
 */
export class StorageWatch {
  #birth: string | undefined;
  #degradedAt: number | undefined;
  #isEmptied = false;
  #refusal: string | undefined;
  #openAt = 0;
  readonly #looks = new Periodic(LOOK_MS, () => this.#look().catch(() => undefined)); // still away

  constructor(
    private readonly opened: OpenStorage,
    private readonly emit: Emit,
  ) {}

  /** Whether the storage was opened: at the boot, or since. */
  get isOpen(): boolean {
    return !(this.opened instanceof LateStorage) || this.opened.isOpen;
  }

  /** Whether the storage did not take the last logouts: they wait in memory, and a crash would lose them. */
  get isDegraded(): boolean {
    return this.#degradedAt !== undefined;
  }

  /** Whether it has been degraded for a second: no logout should wait for it before it answers the watch. */
  get isAway(): boolean {
    return performance.now() - (this.#degradedAt ?? Infinity) >= AWAY_MS;
  }

  /** Whether what the storage had taken is gone. Stays so until the process ends. */
  get isEmptied(): boolean {
    return this.#isEmptied;
  }

  /** Why a storage that nothing answered for at the boot cannot be used although it answers now. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  start(): void {
    this.#looks.start();
    if (this.opened instanceof LateStorage && !this.isOpen) this.degrade(this.opened.failure.problem);
    else void this.#looks.run();
  }

  async stop(): Promise<void> {
    await this.#looks.stop();
  }

  /** The storage has not taken a logout. */
  degrade(cause: string): void {
    if (this.isDegraded) return;
    this.#degradedAt = performance.now();
    this.emit({ type: 'storage-degraded', cause });
    void this.#looks.run();
  }

  /** Never rejects. */
  async look(): Promise<void> {
    await this.#looks.run();
  }

  async #look(): Promise<void> {
    if (this.opened instanceof LateStorage && !this.isOpen) await this.#open(this.opened);
    const { storage, place } = this.opened;
    const birth = await storage.birth();
    if (this.#birth !== undefined && birth !== this.#birth && !this.#isEmptied) {
      this.#isEmptied = true;
      this.emit({ type: 'storage-emptied', place });
    }
    this.#birth ??= birth;
    if (this.isDegraded) await this.#recover();
  }

  async #open(late: LateStorage): Promise<void> {
    if (performance.now() < this.#openAt) throw late.failure;
    try {
      await late.open();
      this.#refusal = undefined;
    } catch (error) {
      if (error instanceof StorageError && !error.unreachable) {
        const { problem, hint = '' } = error;
        this.#refusal = problem;
        this.#openAt = performance.now() + REFUSED_MS;
        this.emit({ type: 'storage-refused', problem, hint });
      }
      throw error;
    }
  }

  /**
   * Writes where a logout is written, and changes nothing that counts: a full disk or a read-only server refuses the pause,
   * and no logout has the subject `-`, but the call needs the right to change their table.
   */
  async #recover(): Promise<void> {
    const { storage } = this.opened;
    await storage.pause('logout', 0);
    await storage.supersedeLogouts(['-']);
    this.#degradedAt = undefined;
    this.emit({ type: 'storage-recovered' });
  }
}
