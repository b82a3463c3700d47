import type { Command } from 'commander';

/** One command, as far as a shell completes it. */
export interface CompletedCommand {
  /** The words that lead to it, each with a blank in front: ` users list`; empty for the program itself. */
  readonly at: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** What its arguments may be, where that is a fixed list. */
  readonly choices: readonly string[];
}

export interface CompletedOption {
  /** `--mode`, and `-h` where there is one. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** The program and all commands below it; what its help shows, and nothing else. */
export function completedCommands(command: Command, at = ''): readonly CompletedCommand[] {
  const help = command.createHelp();
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  const completed: CompletedCommand = {
    at,
    commands: command.commands.map((each) => ({ name: each.name(), description: each.description() })),
    options: options.map(({ long, short, description, required, optional, argChoices }) => ({
      flags: [long, short].filter((flag) => flag !== undefined),
      description,
      takesValue: required || optional,
      choices: argChoices ?? [],
    })),
    choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  };
  return [completed, ...command.commands.flatMap((each) => completedCommands(each, `${at} ${each.name()}`))];
}
