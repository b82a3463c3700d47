import type {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
} from 'nestjs-debate-space';
import type { Command } from 'commander';
import { commandContext, type CliContext, type CommandContext } from './cli-context.js';

/** What a command does its work with. */
export interface Plugin {
  readonly service: DebateSpaceService;
  readonly erasures: DebateSpaceErasures;
  readonly outbox: DebateSpaceOutbox;
  readonly events: DebateSpaceEvents;
}

export interface PluginNeeds {
  /** Whether this process sends what waits in the storage; otherwise it only reads and writes there. */
  readonly worker: boolean;
  /** Whether the storage must be one that outlives the command. */
  readonly shared?: boolean;
}

/** Loads the plugin and NestJS only here: help and version need neither. */
export async function withPlugin<T>(
  context: CommandContext,
  needs: PluginNeeds,
  work: (plugin: Plugin) => Promise<T>,
): Promise<T> {
  const { runWithPlugin } = await import('./plugin-app.js');
  return runWithPlugin(context, needs, work);
}

/** The action of a command that works with the plugin. @param work gets what commander gives, but for the command itself */
export function action<Given extends unknown[]>(
  cli: CliContext,
  needs: PluginNeeds,
  work: (plugin: Plugin, context: CommandContext, ...given: Given) => Promise<void>,
): (...given: [...Given, Command]) => Promise<void> {
  return async (...given) => {
    const context = await commandContext(given.at(-1) as Command, cli);
    await withPlugin(context, needs, (plugin) => work(plugin, context, ...(given.slice(0, -1) as Given)));
  };
}
