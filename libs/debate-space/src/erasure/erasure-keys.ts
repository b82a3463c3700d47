import type { ErasureMode } from './erasure.js';

/** A reference as part of a key: ASCII, and no slash. */
const part = (reference: string): string => encodeURIComponent(reference.toWellFormed());
/** So that the order of texts is the order of moments. */
const moment = (at: number): string => String(Math.max(0, Math.floor(at))).padStart(15, '0');
const LAST_MOMENT = 999_999_999_999_999;

/** From the first key that begins so to – and without – the next one that does not. */
export function startingWith(prefix: `${string}/`): readonly [string, string] {
  return [prefix, `${prefix.slice(0, -1)}0`]; // 0 is what follows the slash
}

/** All erasures of a reference, as a whole. */
export const batchKey = (reference: string): string => `b/${part(reference)}`;
/** The erasure of one user in one mode, until it is over. */
export const entryKey = (uidHash: string, mode: ErasureMode): string => `e/${uidHash}/${mode}`;
export const receiptKey = (reference: string, uidHash: string): string => `r/${part(reference)}/${uidHash}`;
/** Leads from a user to the receipts. */
export const userKey = (uidHash: string, reference: string): string => `u/${uidHash}/${part(reference)}`;

/** When an entry is due: one such key for each of its references. */
export const dueKey = (reference: string, at: number, uidHash: string): string =>
  `d/${part(reference)}/${moment(at)}/${uidHash}`;
export const parkedKey = (reference: string, uidHash: string): string => `p/${part(reference)}/${uidHash}`;

/** When a reference has something to do: never later than its first due entry. */
export const scheduleKey = (at: number, reference: string): string => `s/${moment(at)}/${part(reference)}`;
/** When a reference is overdue. */
export const warningKey = (at: number, reference: string): string => `w/${moment(at)}/${part(reference)}`;
/** Since when a reference is over. */
export const finishedKey = (at: number, reference: string): string => `f/${moment(at)}/${part(reference)}`;
/** The references that are not over, the oldest first. */
export const openKey = (askedAt: number, reference: string): string =>
  `o/${moment(askedAt)}/${part(reference)}`;
/** The references, the newest first. */
export const listKey = (askedAt: number, reference: string): string =>
  `l/${moment(LAST_MOMENT - askedAt)}/${part(reference)}`;

export const dueOf = (reference: string): readonly [string, string] => startingWith(`d/${part(reference)}/`);
export const parkedOf = (reference: string): readonly [string, string] =>
  startingWith(`p/${part(reference)}/`);
export const receiptsOf = (reference: string): readonly [string, string] =>
  startingWith(`r/${part(reference)}/`);
export const referencesOf = (uidHash: string): readonly [string, string] => startingWith(`u/${uidHash}/`);
/** Of a schedule, of warnings, of what is finished: up to a moment. */
export const until = (kind: 's' | 'w' | 'f', at: number): readonly [string, string] => [
  `${kind}/`,
  `${kind}/${moment(at + 1)}`,
];

/** The parts of a key that begins with a moment: `s/`, `w/`, `f/`, `o/` and `l/`. */
export function atAndReference(key: string): { readonly at: number; readonly reference: string } {
  const [, at, reference = ''] = key.split('/');
  return { at: Number(at), reference: decodeURIComponent(reference) };
}

/** The last part of a key: a hash or, encoded, a reference. */
export function lastPart(key: string): string {
  return decodeURIComponent(key.slice(key.lastIndexOf('/') + 1));
}

/** The moment in a {@link dueKey}. */
export function dueAt(key: string): number {
  return Number(key.split('/')[2]);
}
