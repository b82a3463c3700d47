import { randomUUID } from 'node:crypto';
import { timeoutOrThrow } from '../async/with-timeout.js';
import { StorageError } from '../errors.js';
import type { Emit } from '../events.js';
import type { DebateSpaceStorage } from './storage.js';

export const FORMAT_FAMILY = 'format';

const FORMAT = 1;
const KEY = `${FORMAT_FAMILY}:`;
const END = `${KEY}~`;
const LOOK_MS = 1_500;
const OPEN_MS = 5_000;

interface StoredFormat {
  readonly v: number;
  /** Of this filling of the storage: another process that notices first writes the row again, with another id. */
  readonly id: string;
}

/**
 * The row that every storage has: the format of what is in it, and the proof that it was not emptied. It is read as often
 * as a process looks for work.
 */
export class FormatRow {
  readonly #storage: DebateSpaceStorage;
  #id: string | undefined;
  #isEmptied = false;
  #isLooking = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(storage: DebateSpaceStorage) {
    this.#storage = storage;
  }

  /**
   * Reads the row, or writes it. A storage that does not answer stops no boot: the first look that it answers does so.
   * @throws {@link StorageError} when a newer version of the plugin has written it
   */
  static async open(storage: DebateSpaceStorage): Promise<FormatRow> {
    const row = new FormatRow(storage);
    const format = await timeoutOrThrow(row.#enter(), OPEN_MS).catch(() => FORMAT);
    if (format <= FORMAT) return row;
    throw new StorageError(
      `The storage was written by a newer version of nestjs-debate-space (format ${format}, this version knows ${FORMAT})`,
      'install that version again, or give another place',
    );
  }

  /** Whether what was accepted is gone. Stays so until the process ends. */
  get isEmptied(): boolean {
    return this.#isEmptied;
  }

  /** Looks every 1.5 s, until {@link stop}. */
  start(emit: Emit): void {
    const look = (): void => void this.#look(emit);
    this.#timer ??= setInterval(look, LOOK_MS).unref();
    look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Never rejects: whoever needs the storage reports that it does not answer. */
  async #look(emit: Emit): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const known = this.#id;
      const found = await this.#read();
      const isOther = known !== undefined && found?.id !== known;
      if (isOther || this.#storage.wasEmptied) this.#noteEmptied(emit);
      if (found === undefined || found.id !== known) await this.#enter();
    } catch (error) {
      const problem = error instanceof StorageError ? error.problem : undefined;
      if (this.#storage.wasEmptied) this.#noteEmptied(emit, problem);
    } finally {
      this.#isLooking = false;
    }
  }

  #noteEmptied(emit: Emit, problem?: string): void {
    if (this.#isEmptied) return;
    this.#isEmptied = true;
    emit({ type: 'storage-emptied', place: this.#storage.place, problem });
  }

  /** @returns the format that is there now */
  async #enter(): Promise<number> {
    for (;;) {
      const [before] = await this.#storage.get([KEY]); // first: the row of a process that is faster must fail our commit
      const found = await this.#read();
      if (found) this.#id = found.id;
      if (found || (await this.#write(before))) return found?.v ?? FORMAT;
    }
  }

  /** By a range: Redis may have evicted the names or the values. */
  async #read(): Promise<StoredFormat | undefined> {
    const [row] = await this.#storage.range(KEY, END, { limit: 1 });
    return row && formatOf(row[1]);
  }

  /** @param before what is there, if it is no row @returns whether this process was the first to write it */
  async #write(before: string | undefined): Promise<boolean> {
    const row: StoredFormat = { v: FORMAT, id: randomUUID() };
    const isMade = await this.#storage.commit(
      new Map([[KEY, before]]),
      new Map([[KEY, JSON.stringify(row)]]),
    );
    if (isMade) this.#id = row.id;
    return isMade;
  }
}

/** @returns `undefined` when it is damaged */
function formatOf(text: string): StoredFormat | undefined {
  try {
    const { v, id } = Object(JSON.parse(text)) as Partial<Record<keyof StoredFormat, unknown>>;
    return typeof v === 'number' && typeof id === 'string' ? { v, id } : undefined;
  } catch {
    return undefined;
  }
}
