import { createHash } from 'node:crypto';
import type { Conflict, NewReference, Reference } from './storage.js';

/** When the session ended: the id of a logout begins with it. */
export const endedAtOf = (id: string): number => Number(id.slice(0, 15));

/** A short, fixed name of a reference. */
export const referenceKey = (reference: string): string =>
  createHash('sha256').update(reference).digest('base64url').slice(0, 22);

/** The id of the job that erases a user under a reference. */
export const erasureId = (reference: string, subject: string): string =>
  `${referenceKey(reference)}.${subject}`;

/**
 * Why users cannot be added to a reference, the same in every engine.
 * @param isNew whether this call has made the reference
 * @param hasNew whether one of the users is new to it
 */
export function conflictOf(
  known: Reference,
  reader: unknown,
  { mode, list, known: read }: NewReference,
  isNew: boolean,
  hasNew: boolean,
): Conflict | undefined {
  if (!isNew && known.mark !== read?.mark) return 'changed';
  if (known.mode !== mode) return 'mode';
  if (known.canceled) return 'canceled';
  if (!list) return known.complete ? undefined : 'incomplete';
  if (!list.isFirst && list.reader !== reader) return 'other-reader';
  return hasNew && known.complete ? 'complete' : undefined;
}
