import { createInterface } from 'node:readline/promises';
import { Failure } from './failure.js';
import type { CommandContext } from './cli-context.js';

/**
 * Has a person type what is about to be done – the verb and the number, so that neither the wrong verb nor the wrong
 * list goes unnoticed.
 * @param consequence what cannot be undone
 * @throws {Failure} when something else is typed, or when there is nobody to type
 */
export async function confirm(
  { io, output }: CommandContext,
  consequence: string,
  words: string,
): Promise<void> {
  const { stdin, stderr, interrupted } = io;
  if (stdin.isTTY !== true) {
    throw new Failure('usage', `${consequence}\nNo terminal to confirm on. Add --yes to proceed.`);
  }
  output.note(consequence);
  // Not as a terminal: readline would keep Ctrl-C for itself.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const gone = new Promise<string>((resolve) =>
      lines.once('close', () => {
        resolve('');
      }),
    );
    const typed = await Promise.race([
      lines.question(`Type "${words}" to proceed: `, { signal: interrupted }),
      gone,
    ]);
    // British spelling, too
    if (typed.trim().replace(/ise(?= )/, 'ize') !== words)
      throw new Failure('failed', 'Confirmation did not match. Nothing was changed.');
  } catch (error) {
    if (interrupted.aborted) throw new Failure('unfinished', '\nInterrupted. Nothing was changed.');
    throw error;
  } finally {
    lines.close();
  }
}
