import type { DeliveryProgress, OutboxCounts } from '../outbox.js';
import { isSealedEntry, unreadableEntry, type SealedEntry } from '../sealed-entry.js';

/** What the file keeps of an entry. */
export interface StoredEntry extends DeliveryProgress {
  readonly entry: SealedEntry;
  /** Of the entry's uid, as it was when the entry came: after a change of the storage key it would be another. */
  readonly uidHash: string;
  /** `unreadable` is never written: it stands for what is in the file and is no entry. */
  readonly state: keyof OutboxCounts | 'unreadable';
  /** By the outbox's clock: when it is due, or, parked, since when it is. */
  readonly at: number;
  /** Orders what came in one millisecond. */
  readonly turn: number;
  readonly parked?: { readonly cure: string; readonly parkedAt: number };
}

export const FRESH: DeliveryProgress = { attempts: 0, rejections: 0, cause: undefined };

/** The part of {@link StoredEntry} that is never written without the rest; anything else is unreadable. */
export function readStored(id: string, text: string): StoredEntry {
  try {
    const stored = JSON.parse(text) as Partial<StoredEntry> | null;
    if (
      isSealedEntry(stored?.entry, id) &&
      typeof stored.uidHash === 'string' &&
      typeof stored.state === 'string' &&
      typeof stored.at === 'number' &&
      typeof stored.turn === 'number'
    ) {
      return stored as StoredEntry;
    }
  } catch {
    // Not JSON: unreadable as well.
  }
  return { ...FRESH, entry: unreadableEntry(id), uidHash: '', state: 'unreadable', at: 0, turn: 0 };
}
