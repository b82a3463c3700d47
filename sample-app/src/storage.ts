import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConfigService } from '@nestjs/config';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { StartError } from './start-error.js';

/** Beside package.json, whichever folder the app is started from. */
const FOLDER = fileURLToPath(new URL('..', import.meta.url));

/**
 * Where logouts and erasures wait, and receipts are kept: `DEBATE_SPACE_STORAGE`.
 * @returns the storage, and the setting with an absolute path, for the command line
 * @throws {StartError} when the setting is neither `memory` nor `sqlite:<file>`
 */
export function storageFrom(config: ConfigService): { engine: StorageEngine; setting: string } {
  const given = config.get<string>('DEBATE_SPACE_STORAGE') ?? '';
  const setting = given === '' ? 'sqlite:.storage/debate-space.db' : given;
  if (setting === 'memory') return { engine: memoryStorage(), setting };
  const [, file] = /^sqlite:(.+)$/.exec(setting) ?? [];
  if (file === undefined)
    throw new StartError('DEBATE_SPACE_STORAGE is not usable.\nhint: set it to memory, or to sqlite:<file>.');
  const path = resolve(FOLDER, file);
  return { engine: sqliteStorage({ path }), setting: `sqlite:${path}` };
}
