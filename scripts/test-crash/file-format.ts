import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { StorageContext } from 'nestjs-debate-space';
import { codeOf, messageOf } from '../caught.js';

/** Says that a file is of a later version, opens it as this one would, and takes it back. @returns what was wrong */
export async function openLater(folder: string): Promise<string[]> {
  const { lmdbStorage } = await import('nestjs-debate-space/lmdb');
  const [namespace = ''] = readdirSync(folder);
  const context: StorageContext = {
    namespace,
    families: ['due'],
    contained: (work) => {
      work();
    },
  };
  const format = await changeFormat(join(folder, namespace), (number) => number + 1);
  const trouble: string[] = [];
  try {
    const storage = await lmdbStorage({ path: folder }).open(context);
    await storage.close();
    trouble.push('a file in a later format was opened');
  } catch (error) {
    const message = messageOf(error);
    const isClear =
      codeOf(error) === 'ERR_DURABLE_JOBS_STORAGE' && message.includes(`(format ${format}, this version`);
    if (!isClear) trouble.push(`a file in a later format was refused with: ${message}`);
  }
  await changeFormat(join(folder, namespace), (number) => number - 1);
  return trouble;
}

/** @returns the new one */
async function changeFormat(file: string, change: (format: number) => number): Promise<number> {
  const { open } = await import('lmdb');
  const root = open(file, { noSubdir: false, maxDbs: 64 });
  const meta = root.openDB<number, string>('meta', { encoding: 'json', useVersions: true });
  const format = change(meta.get('format') ?? NaN);
  await meta.put('format', format, 1);
  await root.close();
  return format;
}
