import { DebateSpaceOptionsError, memoryStorage, type OptionProblem } from 'nestjs-debate-space';
import { bootPlugin } from '../plugin-app.js';
import type { Settings } from '../settings.js';
import { inVariables } from '../variables.js';

/** What the plugin itself would refuse at boot. Nothing is sent: a storage in memory is empty. */
export async function optionProblems(settings: Settings): Promise<readonly OptionProblem[]> {
  try {
    const app = await bootPlugin(settings, memoryStorage(), true, false);
    await app.close();
    return [];
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError) return error.problems.map(inVariables);
    throw error;
  }
}
