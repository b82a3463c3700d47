import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf, messageOf } from './failure.js';
import type { Surroundings } from './surroundings.js';

/**
 * What a command prints. Its answer goes to stdout, for people or – with `--json` – as JSON and nothing else; whatever
 * is said beside it goes to stderr.
 */
export class Output {
  /** Whether the answer is JSON. Default: false. */
  json = false;
  readonly #surroundings: Pick<Surroundings, 'stdout' | 'stderr'>;
  #answered = false;
  #noteTo: (text: string) => void;

  constructor(surroundings: Pick<Surroundings, 'stdout' | 'stderr'>) {
    this.#surroundings = surroundings;
    this.#noteTo = this.#toStderr;
  }

  /** @param text the same for people */
  answer(value: unknown, text: string): void {
    this.#answered = true;
    this.#surroundings.stdout.write(`${this.json ? JSON.stringify(value, undefined, 2) : text}\n`);
  }

  /** One line for each; with `--json` a JSON value on each line. @returns how many there were */
  async each<T>(items: AsyncIterable<T>, text: (item: T) => string): Promise<number> {
    let count = 0;
    const { json } = this;
    async function* lines(): AsyncGenerator<string> {
      for await (const item of items) {
        count += 1;
        yield `${json ? JSON.stringify(item) : text(item)}\n`;
      }
    }
    await this.stream(Readable.from(lines()));
    return count;
  }

  /** Text as it comes. Ends early, without an error, when nobody reads it any more. */
  async stream(text: Readable): Promise<void> {
    try {
      await pipeline(text, this.#surroundings.stdout, { end: false });
    } catch (error) {
      if (codeOf(error) !== 'EPIPE' && !this.#surroundings.stdout.destroyed) throw error;
    }
  }

  /** For people. */
  note(text: string): void {
    this.#noteTo(text);
  }

  /** Notes go elsewhere for a while: a line of its own would tear a progress bar. Without an argument, to stderr again. */
  sendNotes(to: (text: string) => void = this.#toStderr): void {
    this.#noteTo = to;
  }

  readonly #toStderr = (text: string): void => {
    this.#surroundings.stderr.write(`${text}\n`);
  };

  /** For people – what they were not told yet –, and for programs unless they have the command's answer already. */
  failure(error: unknown, isTold = false): void {
    const message = messageOf(error);
    if (!isTold) this.note(message);
    if (!this.json || this.#answered) return;
    this.#surroundings.stdout.write(`${JSON.stringify({ error: { code: codeOf(error), message } })}\n`);
  }
}
