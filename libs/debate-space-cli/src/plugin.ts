import type {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
} from 'nestjs-debate-space';
import type { CommandContext } from './cli-context.js';

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
