import { randomUUID } from 'node:crypto';
import { StorageError, type Storage } from './storage.js';
import { timeoutOrThrow } from './with-timeout.js';

/** The family of the row that says in which format a namespace is stored. */
export const FORMAT_FAMILY = 'format';

const FORMAT = 1;
const KEY = `${FORMAT_FAMILY}:`;
const END = `${KEY}~`;
const LOOK_MS = 1_500;
const OPEN_MS = 5_000;

export type EmptiedListener = (problem: string | undefined) => void;

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
  readonly #storage: Storage;
  #id: string | undefined;
  #isEmptied = false;
  #isLooking = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(storage: Storage) {
    this.#storage = storage;
  }

  /**
   * Reads the row, or writes it. A storage that does not answer stops no boot: the first look that it answers does so.
   * @throws {@link StorageError} when a newer version of this package has written it
   */
  static async open(storage: Storage): Promise<FormatRow> {
    const row = new FormatRow(storage);
    const format = await timeoutOrThrow(row.#enter(), OPEN_MS).catch(() => FORMAT);
    if (format <= FORMAT) return row;
    throw new StorageError(
      `The storage was written by a newer version of durable-jobs (format ${format}, this version knows ${FORMAT})`,
      'install that version again, or give another place',
    );
  }

  /** Whether what was accepted is gone. Stays so until the process ends. */
  get isEmptied(): boolean {
    return this.#isEmptied;
  }

  /**
   * Looks every 1.5 s, until {@link stop}.
   * @param onEmptied called once, when what was accepted is gone, with the reason why the storage does not work again by
   * itself, if it does not; must not throw
   */
  start(onEmptied: EmptiedListener): void {
    const look = (): void => void this.#look(onEmptied);
    this.#timer ??= setInterval(look, LOOK_MS).unref();
    look();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Never rejects: whoever needs the storage reports that it does not answer. */
  async #look(onEmptied: EmptiedListener): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const known = this.#id;
      const found = await this.#read();
      const isOther = known !== undefined && found?.id !== known;
      if (isOther || this.#storage.wasEmptied) this.#noteEmptied(onEmptied);
      if (found === undefined || found.id !== known) await this.#enter();
    } catch (error) {
      if (this.#storage.wasEmptied) this.#noteEmptied(onEmptied, problemOf(error));
    } finally {
      this.#isLooking = false;
    }
  }

  #noteEmptied(onEmptied: EmptiedListener, problem?: string): void {
    if (this.#isEmptied) return;
    this.#isEmptied = true;
    onEmptied(problem);
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

/** Of a `StorageError`, or of that which a caller has put in its place. */
function problemOf(error: unknown): string | undefined {
  const { problem } = Object(error) as { problem?: unknown };
  return typeof problem === 'string' ? problem : undefined;
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
