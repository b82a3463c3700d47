import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { memoryOutbox, type OutboxFactory } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import { variables } from './variables.js';

/** Which outbox: the one that the app uses, or none beyond this command. */
export type OutboxSetting =
  | { readonly engine: 'memory' }
  | { readonly engine: 'lmdb'; readonly path: string }
  | { readonly engine: 'bullmq'; readonly url: string; readonly prefix: string | undefined };

/** @returns `undefined` when it cannot be understood */
export function outboxSetting(
  text: string,
  folder: string,
  prefix: string | undefined,
): OutboxSetting | undefined {
  if (text === 'memory') return { engine: 'memory' };
  if (/^lmdb:./.test(text)) return { engine: 'lmdb', path: resolve(folder, text.slice('lmdb:'.length)) };
  return /^rediss?:\/\/./.test(text) && URL.canParse(text)
    ? { engine: 'bullmq', url: text, prefix }
    : undefined;
}

/** @throws {Failure} when the folder is not there: an empty outbox would be made, and nobody would deliver from it */
export async function openableOutbox(setting: OutboxSetting): Promise<OutboxFactory> {
  switch (setting.engine) {
    case 'memory':
      return memoryOutbox();
    case 'lmdb': {
      const { path } = setting;
      await access(path).catch(() => {
        throw new Failure(
          'configuration',
          `${variables.outbox}: there is no folder ${path}; give the one that your app gives to lmdbOutbox, and run this command as the app's user`,
        );
      });
      const { lmdbOutbox } = await import('nestjs-debate-space/lmdb');
      return lmdbOutbox({ path });
    }
    case 'bullmq': {
      const { bullmqOutbox } = await import('nestjs-debate-space/bullmq');
      return bullmqOutbox({ connection: setting.url, prefix: setting.prefix });
    }
  }
}
