import { CommanderError } from 'commander';
import { exitCodes, type ExitCode } from './exit-codes.js';
import { exitCodeOf, Failure } from './failure.js';
import { Output } from './output.js';
import { buildProgram } from './program.js';
import type { CliIo } from './cli-io.js';

/** Runs one command line. @param args without the program's own name @returns the exit code; never rejects */
export async function runCli(args: readonly string[], io: CliIo): Promise<ExitCode> {
  const output = new Output(io);
  const code = await runCommand(args, io, output);
  const unwritten = await output.unwritten();
  if (unwritten === undefined) return code;
  output.note(`stdout cannot be written (${unwritten}): the answer is missing or incomplete.`);
  return code === exitCodes.done ? exitCodes.failed : code;
}

async function runCommand(args: readonly string[], io: CliIo, output: Output): Promise<ExitCode> {
  try {
    await buildProgram({ io, output }).parseAsync(args, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.done; // --help, --version
      output.failure(new Failure('usage', error.message), true); // commander has told people
      return exitCodes.usage;
    }
    const isBrokenOff = io.interrupted.aborted && !(error instanceof Failure);
    const reason = isBrokenOff ? new Failure('unfinished', 'Interrupted: run the command again.') : error;
    await output.unwritten(); // the reason comes last, also where stdout and stderr are one file
    output.failure(reason);
    return exitCodeOf(reason);
  }
}
