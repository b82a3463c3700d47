import { Argument, type Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { bourneScript } from '../completion/bourne-script.js';
import { completedCommands } from '../completion/completed-commands.js';
import { fishScript } from '../completion/fish-script.js';
import { addExamples } from '../examples.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Prints what a shell reads to complete commands and options. */
export function addCompletion(program: Command, cli: CliContext): void {
  const command = program
    .command('completion')
    .description('a script by which your shell completes commands and options')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action((shell: Shell) => {
      const commands = completedCommands(program);
      const script = shell === 'fish' ? fishScript(commands) : bourneScript(shell, commands);
      cli.output.answer({ shell, script }, script);
    });
  addExamples(command, 'completion bash > ~/.debate-space-completion', 'completion fish');
}
