import { randomUUID } from 'node:crypto';
import { rmSync, type WriteStream } from 'node:fs';
import { link, lstat, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, Failure } from './failure.js';

// Of FAT, and of some network file systems.
const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/**
 * Writes a new file that has its name only when it is complete. Until then it is a temporary file in the same folder, readable
 * by its owner only, which is removed when anything fails. A file that has the name stays as it is, also one that gets it
 * meanwhile.
 * @param write must end and close the stream
 * @throws {Failure} when the name is taken, or the file cannot be written
 */
export async function writeNewFile<T>(path: string, write: (stream: WriteStream) => Promise<T>): Promise<T> {
  if (await exists(path)) throw taken(path);
  const temporary = join(dirname(path), `.debate-space-${randomUUID()}`);
  const file = await created(temporary, path);
  const removeAtExit = (): void => {
    rmSync(temporary, { force: true }); // a second Ctrl-C ends the process immediately
  };
  process.once('exit', removeAtExit);
  const stream = file.createWriteStream({ flush: true });
  try {
    const result = await write(stream);
    await publish(temporary, path);
    return result;
  } catch (error) {
    if (isOfSystem(error)) throw notWritten(path, error);
    throw error;
  } finally {
    stream.destroy();
    await closed(stream);
    await rm(temporary, { force: true });
    process.off('exit', removeAtExit);
  }
}

async function created(temporary: string, path: string): Promise<FileHandle> {
  try {
    return await open(temporary, 'wx', 0o600);
  } catch (error) {
    throw notWritten(path, error);
  }
}

function closed(stream: WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.once('close', resolve);
  });
}

async function publish(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path); // rename would replace a file that got the name meanwhile
  } catch (error) {
    if (codeOf(error) === 'EEXIST' || (await exists(path))) throw taken(path);
    if (!NO_HARD_LINKS.has(codeOf(error))) throw error;
    await rename(temporary, path);
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw notWritten(path, error);
  }
}

function isOfSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

function taken(path: string): Failure {
  return new Failure('failed', `${path} exists; name another file.`);
}

function notWritten(path: string, error: unknown): Failure {
  return new Failure('failed', `${path} cannot be written (${codeOf(error)}).`);
}
