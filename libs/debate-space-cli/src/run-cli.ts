import { CommanderError } from 'commander';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { exitCodeOf, Failure } from './failure.js';
import { Output } from './output.js';
import { buildProgram } from './program.js';
import type { Surroundings } from './surroundings.js';

/** Runs one command line. @param args without the program's own name @returns the exit code; never rejects */
export async function runCli(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const output = new Output(surroundings);
  try {
    await buildProgram({ ...surroundings, output }).parseAsync(args, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.done; // --help, --version
      output.failure(new Failure('usage', error.message), true); // commander has told people
      return exitCodes.usage;
    }
    const isBrokenOff = surroundings.interrupted.aborted && !(error instanceof Failure);
    const reason = isBrokenOff ? new Failure('unfinished', 'Interrupted: run the command again.') : error;
    output.failure(reason);
    return exitCodeOf(reason);
  }
}
