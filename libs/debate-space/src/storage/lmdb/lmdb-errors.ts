import { StorageError } from '../../errors.js';

/** Of Linux and macOS; LMDB gives the number only. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 69, 27]);
const FORBIDDEN = new Set<unknown>(['EACCES', 'EPERM', 'EROFS']);

/** @param what happened, such as "The storage in /data could not be written" */
export function storageError(what: string, error: unknown): unknown {
  if (error instanceof StorageError || error instanceof TypeError) return error;
  const { code, message = '' } = error as { code?: string | number; message?: string };
  const reason = code ?? /MDB_\w+/.exec(message)?.[0] ?? 'no reason given';
  return new StorageError(`${what} (${reason}); hint: ${hintFor(reason)}`);
}

function hintFor(reason: string | number): string {
  if (FULL.has(reason)) return 'make room: the disk is full; no restart of the app is needed';
  if (reason === 'ENOTDIR' || reason === 'EEXIST') return 'give another path: that is not a folder';
  if (FORBIDDEN.has(reason)) return 'give the folder to the user that runs the app, or give another path';
  return 'check the disk and restart the app; if the file is damaged, move the folder away, and an empty one is made';
}

/** LMDB's real reason comes in a promise of its own, whose rejection nobody may leave unhandled. */
export const causeOf = async (error: unknown): Promise<unknown> =>
  (await (error as { commitError?: Promise<never> }).commitError?.catch((cause: unknown) => cause)) ?? error;
