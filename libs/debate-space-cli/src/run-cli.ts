import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import type { CliContext, CliIo } from './cli-context.js';
import { addDoctor } from './commands/doctor.js';
import { addErase } from './commands/erase.js';
import { addErasures } from './commands/erasures.js';
import { addLogout } from './commands/logout.js';
import { addOutbox } from './commands/outbox.js';
import { addStorage } from './commands/storage.js';
import { addUsers } from './commands/users.js';
import { endings, exitCodeOf, Failure } from './failure.js';
import { Output, table } from './output.js';
import { readSettings, settingsOf } from './settings.js';

/** Runs one command line. @param args without the program's own name @returns the exit code; never rejects */
export async function runCli(args: readonly string[], io: CliIo): Promise<number> {
  const output = new Output(io);
  const code = await runCommand(args, io, output);
  const unwritten = await output.unwritten();
  if (unwritten === undefined) return code;
  output.note(`stdout cannot be written (${unwritten}): the answer is missing or incomplete.`);
  return code === endings.done[0] ? endings.failed[0] : code;
}

async function runCommand(args: readonly string[], io: CliIo, output: Output): Promise<number> {
  try {
    const cli = { io, output, settings: settingsOf({}, io.folder) };
    await buildProgram(cli).parseAsync(args, { from: 'user' });
    return endings.done[0];
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return endings.done[0]; // --help, --version
      output.failure(new Failure('usage', error.message), true); // commander has told people
      return endings.usage[0];
    }
    const isBrokenOff = io.interrupted.aborted && !(error instanceof Failure);
    const reason = isBrokenOff ? new Failure('unfinished', 'Interrupted: run the command again.') : error;
    await output.unwritten(); // the reason comes last, also where stdout and stderr are one file
    output.failure(reason);
    return exitCodeOf(reason);
  }
}

const AFTER_HELP = `
Configured by DEBATE_SPACE_* variables of the environment, or of a file .env in the working folder.

Examples:
  npx debate-space doctor
  npx debate-space users export --format csv --out users.csv
  npx debate-space erase --file users.csv --mode delete --reference GDPR-2026-11
  npx debate-space erasures status GDPR-2026-11

Exit codes:
`;

/** What it prints and reads goes through the context. */
function buildProgram(cli: CliContext): Command {
  const meanings = Object.values(endings).map(([code, meaning]) => [`  ${code}`, meaning]);
  const program = new Command('debate-space')
    .description('Users, erasures and the outbox of nestjs-debate-space, and a doctor.')
    .version(version(), '-v, --version')
    .option('--json', 'the answer as JSON on stdout, and nothing else there')
    // Not --env-file: Node opens the file of this argument itself, also after the script, and ends with 9 where it cannot.
    .option('--config <file>', 'read missing variables from this file (default: .env, if present)')
    .addHelpText('after', `${AFTER_HELP}${table(meanings)}\n`)
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.io.stdout.write(text), // help, which is ours
      writeErr: (text) => {
        cli.output.note(text.trimEnd()); // quotes the arguments
      },
    })
    .on('option:json', () => {
      cli.output.json = true;
    })
    .hook('preAction', async (_, command) => {
      const { config } = command.optsWithGlobals<{ config?: string }>();
      cli.settings = await readSettings(cli.io.env, cli.io.folder, config);
    });
  for (const add of [addUsers, addErase, addErasures, addOutbox, addLogout, addStorage, addDoctor])
    add(program, cli);
  return program;
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
