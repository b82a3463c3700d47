import type { Command } from 'commander';

/** Below the help of a command. */
export function addExamples(command: Command, ...lines: readonly string[]): void {
  const indented = lines.map((line) => `  npx debate-space ${line}\n`);
  command.addHelpText('after', `\nExamples:\n${indented.join('')}`);
}
