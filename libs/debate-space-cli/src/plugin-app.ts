import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceOptionsError,
  DebateSpaceOutbox,
  DebateSpaceService,
  type StorageEngine,
} from 'nestjs-debate-space';
import { codeOf, Failure } from './failure.js';
import { refuse, type CommandContext } from './cli-context.js';
import type { Output } from './output.js';
import type { Plugin, PluginNeeds } from './plugin.js';
import { pluginOptions, type Settings } from './settings.js';
import { connectStorage } from './storage.js';
import { inVariables, textInVariables, variables } from './variables.js';

const STORE_WITHIN_MS = 10_000;

/** Boots the plugin without a server, works with it, and closes it whatever happens. */
export async function runWithPlugin<T>(
  { settings, output }: CommandContext,
  { worker, shared = false }: PluginNeeds,
  work: (plugin: Plugin) => Promise<T>,
): Promise<T> {
  if (settings.problems.length > 0) refuse(settings.problems);
  const isMemory = settings.storage.engine === 'memory';
  if (shared && isMemory) {
    throw new Failure(
      'configuration',
      `This needs the storage of your app: set ${variables.storage} to sqlite:<file>, or to the URL of its Postgres, MySQL or MariaDB. A storage in memory is seen by its own process only.`,
    );
  }
  const connection = await connectStorage(settings.storage);
  try {
    const app = await bootPlugin(settings, connection.engine, worker || isMemory, new NotesOf(output));
    try {
      return await work({
        service: app.get(DebateSpaceService),
        erasures: app.get(DebateSpaceErasures),
        outbox: app.get(DebateSpaceOutbox),
        events: app.get(DebateSpaceEvents),
      });
    } finally {
      await app.close();
    }
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError) refuse(error.problems.map(inVariables));
    throw withAddress(error, settings);
  } finally {
    await connection.close();
  }
}

/** A connection that failed says where to. */
function withAddress(error: unknown, { authUrl, baseUrl }: Settings): unknown {
  const isOne = baseUrl === undefined || hostOf(baseUrl) === hostOf(authUrl);
  if (isOne && codeOf(error) === 'ERR_DEBATE_SPACE_NETWORK')
    Object.assign(Object(error), { host: hostOf(authUrl) });
  return error;
}

function hostOf(url = ''): string {
  return new URL(url).host;
}

/** @param worker must be true for a storage in memory: what waits there has nobody else */
export function bootPlugin(
  settings: Settings,
  storage: StorageEngine,
  worker: boolean,
  logger: LoggerService | false,
): Promise<INestApplicationContext> {
  // Nobody's response waits here: better a slow disk than a logout in the memory of a process that ends.
  const logout = { storageTimeoutMs: STORE_WITHIN_MS };
  const plugin = DebateSpaceModule.forRoot({ ...pluginOptions(settings), storage, worker, logout });
  return NestFactory.createApplicationContext(plugin, { logger, abortOnError: false });
}

/** What the plugin warns of, beside the command's answer. */
export class NotesOf implements LoggerService {
  readonly #output: Output;

  constructor(output: Output) {
    this.#output = output;
  }

  log(): void {
    // What is on is not read.
  }

  warn(message: string): void {
    this.#output.note(`warning: ${textInVariables(message)}`);
  }

  error(message: unknown, ...more: readonly unknown[]): void {
    // Nest logs what it throws as well.
    if (!more.includes('ExceptionHandler')) this.#output.note(`error: ${textInVariables(String(message))}`);
  }
}
