import { DebateSpaceOptionsError, memoryOutbox } from 'nestjs-debate-space';
import { bootPlugin } from '../plugin-app.js';
import type { Settings } from '../settings.js';
import { inVariables } from '../variables.js';

/** What the plugin itself would refuse at boot. Nothing is sent: an outbox in memory is empty. */
export async function optionProblems(settings: Settings): Promise<readonly string[]> {
  try {
    const app = await bootPlugin(settings, memoryOutbox(), true, false);
    await app.close();
    return [];
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError) return error.problems.map(inVariables);
    throw error;
  }
}
