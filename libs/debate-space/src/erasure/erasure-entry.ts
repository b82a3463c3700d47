import type { ErasureMode } from './erasure.js';
import type { Draft } from './draft.js';
import { dueKey, entryKey, parkedKey } from './erasure-keys.js';
import type { StoredEntry } from './stored-erasure.js';

/** One user's erasure, as a part of a change: the record and what leads to it from each of its references. */
export class ErasureEntry {
  readonly uidHash: string;
  readonly mode: ErasureMode;
  readonly stored: StoredEntry;
  readonly #draft: Draft;

  private constructor(draft: Draft, uidHash: string, mode: ErasureMode, stored: StoredEntry) {
    this.#draft = draft;
    this.uidHash = uidHash;
    this.mode = mode;
    this.stored = stored;
  }

  static async find(draft: Draft, uidHash: string, mode: ErasureMode): Promise<ErasureEntry | undefined> {
    const [entry] = await ErasureEntry.findAll(draft, [uidHash], mode);
    return entry;
  }

  static async findAll(
    draft: Draft,
    uidHashes: readonly string[],
    mode: ErasureMode,
  ): Promise<readonly (ErasureEntry | undefined)[]> {
    const found = await draft.getAll<StoredEntry>(uidHashes.map((uidHash) => entryKey(uidHash, mode)));
    return found.map((stored, n) => stored && new ErasureEntry(draft, uidHashes[n] ?? '', mode, stored));
  }

  static begin(draft: Draft, uidHash: string, mode: ErasureMode, sealed: string, now: number): ErasureEntry {
    const progress = { attempts: 0, failures: 0, unknown: false, rejections: 0, parked: false };
    return new ErasureEntry(draft, uidHash, mode, {
      sealed,
      references: [],
      since: now,
      dueAt: now,
      ...progress,
    });
  }

  /** Changes it together with what leads to it. */
  change(change: Partial<StoredEntry>): void {
    for (const key of this.#ways()) this.#draft.remove(key);
    Object.assign(this.stored, change);
    for (const key of this.#ways()) this.#draft.put(key, '');
    this.#draft.put(entryKey(this.uidHash, this.mode), this.stored);
  }

  remove(): void {
    for (const key of this.#ways()) this.#draft.remove(key);
    this.#draft.remove(entryKey(this.uidHash, this.mode));
  }

  /** One reference asks for it no more. */
  leave(reference: string): void {
    const references = this.stored.references.filter((other) => other !== reference);
    if (references.length === 0) this.remove();
    else this.change({ references });
  }

  #ways(): readonly string[] {
    const { references, parked, dueAt } = this.stored;
    return references.map((reference) =>
      parked ? parkedKey(reference, this.uidHash) : dueKey(reference, dueAt, this.uidHash),
    );
  }
}
