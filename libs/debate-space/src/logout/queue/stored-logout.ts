import type { FoundJob, JobCodec } from 'durable-jobs';
import type { DeliveryProgress, LogoutContext, LogoutJob } from '../logout.js';

/** What the storage keeps of a logout, in its job; the key of the job is the hash of the uid. */
interface StoredLogout extends DeliveryProgress, Pick<LogoutJob, 'retriedAt'> {
  readonly sealed: string;
  readonly reason: LogoutJob['entry']['reason'];
  readonly endedAt: number;
}

export const UNTRIED: DeliveryProgress = { attempts: 0, rejections: 0, cause: undefined };
export const UNREADABLE_HINT =
  'this logout cannot be read: its record is damaged, or was written by a newer version of nestjs-debate-space or with ' +
  'another storageKey. Run that version or restore that key and retry the logout, or discard it';

/** The id as a part of a key. It begins with `endedAt`, so that the order of the records is that of age. */
export const jobIdOf = (id: string): string => encodeURIComponent(id.toWellFormed());
export const endedAtOf = (jobId: string): number => Number(jobId.slice(0, 15));

export function progressOf({ attempts, rejections, cause }: DeliveryProgress): DeliveryProgress {
  return { attempts, rejections, cause };
}

export function logoutCodec({ uids }: LogoutContext): JobCodec<LogoutJob> {
  return {
    encode: ({ entry: { id, uid, reason, endedAt }, retriedAt, ...progress }, _id, uidHash): StoredLogout => {
      // As the hash was when the logout came: after a change of the storage key it would be another.
      const sealed = uids.seal(uid, { kind: 'logout', id, uidHash });
      return { reason, endedAt, sealed, retriedAt, ...progressOf(progress) };
    },
    decode: (stored, jobId, uidHash) => {
      if (!isLogout(stored)) return undefined;
      const id = decodeURIComponent(jobId);
      const uid = uids.open(stored.sealed, { kind: 'logout', id, uidHash });
      return uid === undefined || uid === '' ? undefined : jobOf(id, uid, stored);
    },
  };
}

/** What is known of a logout: one that cannot be read has no uid. */
export function logoutIn({ id, job, stored }: FoundJob<LogoutJob>): LogoutJob {
  if (job) return job.value;
  const { data = {} } = stored ?? {};
  const known = { reason: 'destroyed', endedAt: endedAtOf(id), ...UNTRIED } as const;
  return jobOf(decodeURIComponent(id), '', isLogout(data) ? data : known);
}

function jobOf(id: string, uid: string, logout: Omit<StoredLogout, 'sealed'>): LogoutJob {
  const { reason, endedAt, retriedAt } = logout;
  return { entry: { id, uid, reason, endedAt }, retriedAt, ...progressOf(logout) };
}

function isLogout(stored: object): stored is StoredLogout {
  const { sealed, reason, endedAt, attempts, rejections } = stored as Partial<Record<string, unknown>>;
  const texts = [sealed, reason].every((value) => typeof value === 'string');
  return texts && [endedAt, attempts, rejections].every((value) => typeof value === 'number');
}
