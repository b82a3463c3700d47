import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../../errors.js';

/** Makes the key while no other process can. The key is on the disk before anything that it encrypts. */
export function makeKeyFile(folder: string): void {
  const file = join(folder, 'storage-key');
  if (existsSync(file)) return;
  writeFileSync(`${file}.new`, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
  if (process.platform === 'win32') return; // cannot synchronize folders
  const directory = openSync(folder, 'r');
  fsyncSync(directory);
  closeSync(directory);
}

export function readKeyFile(folder: string): string {
  const file = join(folder, 'storage-key');
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return text;
  throw new StorageError(
    `${file} is missing or damaged, and the uids in the storage cannot be read without it`,
    'restore it from a backup, or, if they were stored with the option storageKey, put the output of "openssl rand -base64 32" there',
  );
}
