import { resolve } from 'node:path';

/** Which storage: that of the app, or one in the memory of this command. */
export type StorageSetting =
  | { readonly engine: 'memory' }
  | { readonly engine: 'lmdb'; readonly path: string }
  | { readonly engine: 'redis'; readonly url: string; readonly prefix: string | undefined }
  | { readonly engine: 'postgres'; readonly url: string; readonly table: string | undefined };

export interface StorageNames {
  readonly prefix: string | undefined;
  readonly table: string | undefined;
}

/**
 * @param folder what relative paths start from
 * @returns `undefined` when it cannot be understood
 */
export function storageSetting(
  text: string,
  folder: string,
  { prefix, table }: StorageNames,
): StorageSetting | undefined {
  if (text === 'memory') return { engine: 'memory' };
  if (/^lmdb:./.test(text)) return { engine: 'lmdb', path: resolve(folder, text.slice('lmdb:'.length)) };
  if (!URL.canParse(text)) return undefined;
  if (/^rediss?:\/\/./.test(text)) return { engine: 'redis', url: text, prefix };
  return /^postgres(ql)?:\/\/./.test(text) ? { engine: 'postgres', url: text, table } : undefined;
}

/** Whether it is on a server, and has no key of its own for the uids in it. */
export function needsKey({ engine }: StorageSetting): boolean {
  return engine === 'redis' || engine === 'postgres';
}
