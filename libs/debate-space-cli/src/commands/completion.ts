import { Argument, type Command } from 'commander';
import { completionScript, SHELLS, type Shell } from '../completion-script.js';
import { addExamples } from '../examples.js';
import type { CliContext } from '../cli-context.js';

/** Has a shell complete commands and options. Requests nothing. */
export function addCompletion(program: Command, cli: CliContext): void {
  const command = program
    .command('completion')
    .description('a script by which your shell completes commands and options')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action((shell: Shell) => {
      const script = completionScript(program, shell);
      cli.output.answer({ script }, script);
    });
  addExamples(command, 'completion bash', 'completion fish');
}
