import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../../errors.js';

/**
 * Makes the key, unless there is one: a link never replaces the key that another process makes at the same time. The key
 * is on the disk before anything that it encrypts.
 */
export function makeKeyFile(folder: string): void {
  const file = keyFile(folder);
  if (existsSync(file)) return;
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
  if (process.platform === 'win32') return; // cannot synchronize folders
  const directory = openSync(folder, 'r');
  fsyncSync(directory);
  closeSync(directory);
}

export const keyFile = (folder: string): string => join(folder, 'storage-key');

export function readKeyFile(folder: string): string {
  const file = keyFile(folder);
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return text;
  throw new StorageError(
    `${file} is missing or damaged, and the uids in the storage cannot be read without it`,
    'restore it from a backup, or, if they were stored with the option storageKey, put the output of "openssl rand -base64 32" there',
  );
}
