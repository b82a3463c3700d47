import type { Command } from 'commander';
import type { OptionProblem } from 'nestjs-debate-space';
import type { CliIo } from './cli-io.js';
import { readEnvironment } from './environment.js';
import { Failure } from './failure.js';
import type { Output } from './output.js';
import type { Settings } from './settings.js';

/** What every command is run with. */
export interface CliContext {
  readonly io: CliIo;
  readonly output: Output;
}

/** One run of one command, with what it is configured with. */
export interface CommandContext extends CliContext {
  /** May have problems. */
  readonly settings: Settings;
}

/** @throws {Failure} when the file of `--config` cannot be read */
export async function commandContext(command: Command, cli: CliContext): Promise<CommandContext> {
  const { readSettings } = await import('./settings.js'); // loads the plugin, which help and version do not need
  const { config } = command.optsWithGlobals<{ config?: string }>();
  const settings = readSettings(await readEnvironment(cli.io, config), cli.io.folder);
  return { ...cli, settings };
}

/** Ends a command that cannot go on with what it is configured with. */
export function refuse(problems: readonly OptionProblem[]): never {
  const list = problems
    .map(({ option, problem, hint }) => `  - ${option} ${problem}; hint: ${hint}`)
    .join('\n');
  throw new Failure('configuration', `Invalid configuration:\n${list}\n\`debate-space doctor\` checks more.`);
}
