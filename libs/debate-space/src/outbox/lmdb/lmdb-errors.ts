import { OutboxError } from '../../errors.js';

/** Of Linux and macOS; LMDB gives the number only. */
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 69, 27]);

/** @returns what a host is told when a change could not be written */
export async function writeError(folder: string, error: unknown): Promise<OutboxError> {
  if (error instanceof OutboxError) return error;
  const code = errorCode(await causeOf(error));
  if (FULL.has(code)) {
    return new OutboxError(
      `The outbox in ${folder} cannot take this: the disk is full (${code}). Make room; no restart is needed`,
    );
  }
  return new OutboxError(
    `The outbox in ${folder} could not be written (${code}). Look at the disk; if it is sound, restart the app`,
  );
}

/** @returns what a host is told when the file could not be opened */
export function openError(folder: string, error: unknown): OutboxError {
  if (error instanceof OutboxError) return error;
  const code = errorCode(error);
  const cannot = `lmdbOutbox() cannot use ${folder}:`;
  if (FULL.has(code)) return new OutboxError(`${cannot} the disk is full (${code}). Make room`);
  switch (code) {
    case 'ENOTDIR':
    case 'EEXIST':
      return new OutboxError(
        `${cannot} it is not a folder, or is inside of something that is none. Give another path`,
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new OutboxError(
        `${cannot} this process may not write there (${code}). Give the folder to the user that runs the app, or another path`,
      );
    default:
      return new OutboxError(
        `${cannot} the file in it cannot be opened (${code}). If it is damaged, move the folder away: an empty one is made`,
      );
  }
}

/** LMDB's real reason comes in a promise of its own, whose rejection nobody may leave unhandled. */
async function causeOf(error: unknown): Promise<unknown> {
  try {
    await (error as { commitError?: Promise<never> }).commitError;
    return error;
  } catch (cause) {
    return cause;
  }
}

function errorCode(error: unknown): string | number {
  const { code, message } = error as { code?: string | number; message?: string };
  return code ?? /MDB_\w+/.exec(message ?? '')?.[0] ?? 'no reason given';
}
