import type { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import type { OptionProblem } from 'nestjs-debate-space';
import type { Settings } from './settings.js';
import { Failure } from './failure.js';
import type { Output } from './output.js';

/** What the command line needs of its process. */
export interface CliIo {
  readonly env: NodeJS.ProcessEnv;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly folder: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  /** Aborted by Ctrl-C, and when the process is asked to end. */
  readonly interrupted: AbortSignal;
}

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
  const { readEnvironment, readSettings } = await import('./settings.js'); // loads the plugin, which help and version do not need
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

/** Below the help of a command. */
export function addExamples(command: Command, ...lines: readonly string[]): void {
  const indented = lines.map((line) => `  npx debate-space ${line}\n`);
  command.addHelpText('after', `\nExamples:\n${indented.join('')}`);
}
