import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { Failure } from './failure.js';
import type { Output } from './output.js';
import type { Settings } from './settings.js';

/** What the command line needs of its process. */
export interface CliIo {
  readonly env: NodeJS.ProcessEnv;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly folder: string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  /** Aborted by Ctrl-C, and when the process is asked to end. */
  readonly interrupted: AbortSignal;
}

/** What every command is run with. */
export interface CliContext {
  readonly io: CliIo;
  readonly output: Output;
  /** Read before the action of a command begins; may have problems. */
  settings: Settings;
}

/**
 * Has a person type what is about to be done – the verb and the number, so that neither the wrong verb nor the wrong
 * list goes unnoticed.
 * @param consequence what cannot be undone
 * @throws {Failure} when something else is typed, or when there is nobody to type
 */
export async function confirm({ io, output }: CliContext, consequence: string, words: string): Promise<void> {
  const { stdin, stderr, interrupted: signal } = io;
  if (stdin.isTTY !== true)
    throw new Failure('usage', `${consequence}\nNo terminal to confirm on. Add --yes to proceed.`);
  output.note(consequence);
  // Not as a terminal: readline would keep Ctrl-C for itself.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const gone = new Promise((resolve) => lines.once('close', resolve));
    const typed = await Promise.race([lines.question(`Type "${words}" to proceed: `, { signal }), gone]);
    if (typeof typed === 'string' && typed.trim() === words) return;
  } catch (error) {
    throw signal.aborted ? new Failure('unfinished', '\nInterrupted. Nothing was changed.') : error;
  } finally {
    lines.close();
  }
  throw new Failure('failed', 'Confirmation did not match. Nothing was changed.');
}
