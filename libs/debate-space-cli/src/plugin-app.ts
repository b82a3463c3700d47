import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule, DebateSpaceOptionsError, type OutboxFactory } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import { refuse, type Invocation } from './invocation.js';
import type { Output } from './output.js';
import { openableOutbox } from './outbox-setting.js';
import { pluginOptions, type Settings } from './settings.js';
import { inVariables, variables } from './variables.js';

export interface AppNeeds {
  /** Whether this process sends what waits in the outbox; otherwise it only reads and writes there. */
  readonly dispatch: boolean;
  /** Whether the outbox must be one that outlives the command. */
  readonly shared?: boolean;
}

const STORE_WITHIN_MS = 10_000;

/** Boots the plugin without a server, works with it, and closes it whatever happens. */
export async function withApp<T>(
  { settings, output }: Invocation,
  { dispatch, shared = false }: AppNeeds,
  work: (app: INestApplicationContext) => Promise<T>,
): Promise<T> {
  if (settings.problems.length > 0) refuse(settings.problems);
  const isMemory = settings.outbox.engine === 'memory';
  if (shared && isMemory) {
    throw new Failure(
      'configuration',
      `This needs the outbox that your app uses: set ${variables.outbox} to lmdb:<folder> or to the URL of its Redis. An outbox in memory is seen by its own process only.`,
    );
  }
  const outbox = await openableOutbox(settings.outbox);
  const app = await bootPlugin(settings, outbox, dispatch || isMemory, new NotesOf(output)).catch(
    (error: unknown) => {
      if (error instanceof DebateSpaceOptionsError) refuse(error.problems.map(inVariables));
      throw error;
    },
  );
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

/** @param dispatch must be true for an outbox in memory: what waits there has nobody else */
export function bootPlugin(
  settings: Settings,
  outbox: OutboxFactory,
  dispatch: boolean,
  logger: LoggerService | false,
): Promise<INestApplicationContext> {
  // Nobody's response waits here: better a slow disk than a logout in the memory of a process that ends.
  const logout = { waitMs: STORE_WITHIN_MS };
  const plugin = DebateSpaceModule.forRoot({ ...pluginOptions(settings), outbox, dispatch, logout });
  return NestFactory.createApplicationContext(plugin, { logger, abortOnError: false });
}

/** What the plugin warns of, beside the command's answer. */
class NotesOf implements LoggerService {
  readonly #output: Output;

  constructor(output: Output) {
    this.#output = output;
  }

  log(): void {
    // What is on is not asked for.
  }

  warn(message: string): void {
    this.#output.note(`warning: ${message}`);
  }

  error(message: unknown, ...more: readonly unknown[]): void {
    // Nest tells of what it throws as well.
    if (!more.includes('ExceptionHandler')) this.#output.note(`error: ${String(message)}`);
  }
}
