import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../caught.js';
import { atExit } from './leftovers.js';
import { Skipped } from './skipped.js';

const BLOCK = new Uint8Array(4096);

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'debate-space-crash-'));
  atExit(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A disk that is small enough to be filled. @throws {Skipped} where nobody may mount one */
export function smallDisk(size: string): string {
  const folder = temporaryFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    throw new Skipped('this machine lets nobody mount a small disk');
  }
  atExit(() => execFileSync('umount', ['--lazy', folder]));
  return folder;
}

/** Takes all the room that is left on a disk. @returns gives it back */
export function fill(folder: string): () => void {
  const file = join(folder, 'filler');
  const handle = openSync(file, 'w');
  try {
    for (;;) writeSync(handle, BLOCK);
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC') throw error;
  } finally {
    closeSync(handle);
  }
  return () => {
    rmSync(file);
  };
}
