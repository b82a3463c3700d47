import type { ErasureMode } from './erasure.js';

/** Records: `erasurebatch`, `erasureentry`, `erasurereceipt`. The others are indexes. */
export const ERASURE_FAMILIES = [
  'erasurebatch',
  'erasureentry',
  'erasurereceipt',
  'erasuredue',
  'erasureparked',
  'erasurewait',
  'erasureschedule',
  'erasureoverdue',
  'erasureopen',
  'erasurefinished',
  'erasurelist',
  'erasureuser',
] as const;

/** Indexes of the references, by a moment. */
type MomentFamily = 'erasureschedule' | 'erasureoverdue' | 'erasureopen' | 'erasurefinished' | 'erasurelist';
export type KeyRange = readonly [from: string, to: string];

/** A reference as part of a key: ASCII, at most 1,152 characters, and no colon. */
const part = (reference: string): string => encodeURIComponent(reference.toWellFormed());
/** The order of the texts is the order of the moments. */
const digits = (moment: number): string => String(Math.max(0, Math.floor(moment))).padStart(15, '0');

/** All keys that begin with the prefix. */
const startingWith = (prefix: `${string}:`): KeyRange => [prefix, `${prefix.slice(0, -1)};`]; // ';' follows ':'

export const batchKey = (reference: string): string => `erasurebatch:${part(reference)}`;
export const entryKey = (uidHash: string, mode: ErasureMode): string => `erasureentry:${uidHash}:${mode}`;
export const receiptKey = (reference: string, uidHash: string): string =>
  `erasurereceipt:${part(reference)}:${uidHash}`;

/** When an entry is due, for one of its references. */
export const dueKey = (reference: string, at: number, uidHash: string): string =>
  `erasuredue:${part(reference)}:${digits(at)}:${uidHash}`;
/** There as long as the batch of the reference counts the entry as failed. */
export const parkedKey = (reference: string, uidHash: string): string =>
  `erasureparked:${part(reference)}:${uidHash}`;
/** When an entry is due, whatever its references. */
export const waitKey = (at: number, uidHash: string, mode: ErasureMode): string =>
  `erasurewait:${digits(at)}:${uidHash}:${mode}`;
/** Leads from a user to the receipts. */
export const userKey = (uidHash: string, reference: string): string =>
  `erasureuser:${uidHash}:${part(reference)}`;

/** When a reference has something to do, is overdue, or was asked for or finished. */
export const momentKey = (family: MomentFamily, at: number, reference: string): string =>
  `${family}:${digits(at)}:${part(reference)}`;

export const dueOf = (reference: string): KeyRange => startingWith(`erasuredue:${part(reference)}:`);
export const parkedOf = (reference: string): KeyRange => startingWith(`erasureparked:${part(reference)}:`);
export const receiptsOf = (reference: string): KeyRange => startingWith(`erasurereceipt:${part(reference)}:`);
export const referencesOf = (uidHash: string): KeyRange => startingWith(`erasureuser:${uidHash}:`);
export const allOf = (family: MomentFamily): KeyRange => [`${family}:`, `${family}:~`];
export const until = (family: MomentFamily, at: number): KeyRange => [
  `${family}:`,
  `${family}:${digits(at + 1)}`,
];
export const after = (family: MomentFamily | 'erasurewait', at: number): KeyRange => [
  `${family}:${digits(at + 1)}`,
  `${family}:~`,
];

/** The moment in the key of an index. */
export function momentOf(key: string): number {
  const [family, first, second] = key.split(':');
  return Number(family === 'erasuredue' ? second : first);
}

/** The last part of a key: a hash, or a reference. One that is damaged leads nowhere. */
export function lastPart(key: string): string {
  const last = key.slice(key.lastIndexOf(':') + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

export function entryOfWait(key: string): { readonly uidHash: string; readonly mode: ErasureMode } {
  const [, , uidHash = '', mode] = key.split(':');
  return { uidHash, mode: mode as ErasureMode };
}
