import type { DeliveryProgress } from '../outbox.js';
import { isSealedEntry, unreadableEntry, type SealedEntry } from '../sealed-entry.js';

/** What a job holds. */
export interface LogoutJobData {
  readonly entry: SealedEntry;
  /** As it was when the entry came: after a change of the storage key it would be another. */
  readonly uidHash: string;
  readonly progress: DeliveryProgress;
  readonly parked?: { readonly cure: string; readonly parkedAt: number };
}

export const FRESH: DeliveryProgress = { attempts: 0, rejections: 0 };

/** What anybody else has put in its place is unreadable. */
export function jobData(entryId: string, found: unknown): LogoutJobData {
  const data = found as Partial<LogoutJobData> | null | undefined;
  const isWhole =
    isSealedEntry(data?.entry, entryId) &&
    typeof data.uidHash === 'string' &&
    typeof data.progress?.attempts === 'number';
  return isWhole
    ? (data as LogoutJobData)
    : { entry: unreadableEntry(entryId), uidHash: '', progress: FRESH };
}
