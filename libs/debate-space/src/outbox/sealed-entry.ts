import type { OutboxContext, OutboxEntry } from './outbox.js';

/** An entry as it leaves memory: nobody's uid is read in a file, a dump or a log of commands, nor in what is freed. */
export interface SealedEntry extends Omit<OutboxEntry, 'uid'> {
  readonly sealed: string;
}

/** How an entry is shown to whoever looks after the parked ones when nobody can say whose logout it was. */
export const UNREADABLE_CURE =
  'whose logout this was cannot be read: the entry was damaged, or kept under another storageKey. Give that key back and ' +
  'replay it, or discard it';

export function sealEntry({ uid, ...entry }: OutboxEntry, { seal }: OutboxContext): SealedEntry {
  return { ...entry, sealed: seal(uid) };
}

/** The uid is empty when it cannot be read. */
export function openEntry({ sealed, ...entry }: SealedEntry, { unseal }: OutboxContext): OutboxEntry {
  return { ...entry, uid: unseal(sealed) ?? '' };
}

/** Whether it is an entry that was kept under this id. */
export function isSealedEntry(entry: Partial<SealedEntry> | undefined, id: string): entry is SealedEntry {
  return entry?.id === id && typeof entry.sealed === 'string';
}

/** In place of one that is damaged. */
export function unreadableEntry(id: string): SealedEntry {
  return { id, sealed: '', reason: 'destroyed', endedAt: 0 };
}
