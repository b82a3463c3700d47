import type { Command } from 'commander';
import { readEnvironment } from './environment.js';
import { Failure } from './failure.js';
import type { Output } from './output.js';
import { readSettings, type Settings } from './settings.js';
import type { Shell } from './shell.js';
import type { Surroundings } from './surroundings.js';

/** One run of one command: where it prints, what it is configured with, and when it is to stop. */
export interface Invocation {
  readonly surroundings: Surroundings;
  readonly output: Output;
  /** May have problems. */
  readonly settings: Settings;
}

/** @throws {Failure} when the env file cannot be read */
export async function invocationOf(command: Command, shell: Shell): Promise<Invocation> {
  const { env } = command.optsWithGlobals<{ env?: string }>();
  const settings = readSettings(await readEnvironment(shell, env), shell.folder);
  return { surroundings: shell, output: shell.output, settings };
}

/** Ends a command that cannot go on with what it is configured with. */
export function refuse(problems: readonly string[]): never {
  const list = problems.map((problem) => `  - ${problem}`).join('\n');
  throw new Failure(
    'configuration',
    `The configuration needs mending:\n${list}\n\`debate-space doctor\` checks more.`,
  );
}
