import { pipeline } from 'node:stream/promises';
import { styleText } from 'node:util';
import { codeOf, messageOf } from './failure.js';
import type { CliIo } from './cli-context.js';

type Streams = Pick<CliIo, 'stdout' | 'stderr'> & Partial<Pick<CliIo, 'env'>>;

/**
 * What a command prints. Its answer goes to stdout, for people or – with `--json` – as JSON and nothing else; what it says
 * beside the answer goes to stderr. Text of the service never reaches a terminal with its control characters.
 */
export class Output {
  /** Whether the answer is JSON. Default: false. */
  json = false;
  readonly #stdout: Streams['stdout'];
  readonly #stderr: Streams['stderr'];
  #answered = false;
  #writeError: unknown;
  #noteTo: (text: string) => void;
  readonly #hasColor: boolean;

  constructor({ stdout, stderr, env = {} }: Streams) {
    this.#stdout = stdout;
    this.#hasColor = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'; // no-color.org
    this.#stderr = stderr;
    this.#noteTo = this.#toStderr;
    stdout.on('error', (error) => {
      this.#writeError ??= error;
    });
    stderr.on('error', () => undefined); // there is nowhere else to report it
  }

  /** @param text the same for people */
  answer(value: unknown, text: string): void {
    this.#answered = true;
    this.#stdout.write(
      `${this.json ? this.#data(JSON.stringify(value, undefined, 2)) : this.#colored(printable(text))}\n`,
    );
  }

  /**
   * One line for each; with `--json` a JSON value on each line.
   * @param columns the heading, for people
   * @returns how many there were
   */
  async each<T>(items: AsyncIterable<T>, text: (item: T) => string, columns: string): Promise<number> {
    let count = 0;
    const { json } = this;
    async function* lines(): AsyncGenerator<string> {
      for await (const item of items) {
        if (count === 0 && !json) yield `${columns}\n`;
        count += 1;
        yield `${json ? JSON.stringify(item) : printable(text(item))}\n`;
      }
    }
    await this.stream(lines());
    return count;
  }

  /**
   * Data as it comes.
   * @returns whether stdout took all of it; `unwritten` says why not
   */
  async stream(text: AsyncIterable<string>): Promise<boolean> {
    let count = 0;
    try {
      await pipeline(
        text,
        async function* (this: Output, pieces: AsyncIterable<string>) {
          for await (const piece of pieces) {
            count += 1;
            yield this.#data(piece);
          }
        }.bind(this),
        this.#stdout,
        { end: false },
      );
    } catch (error) {
      if (this.#writeError !== undefined) return false;
      if (count > 0) this.note('The answer on stdout is not complete.');
      throw error;
    }
    return true;
  }

  /** Waits until stdout has taken everything. @returns the system's code when it did not, such as `ENOSPC` */
  async unwritten(): Promise<string | undefined> {
    if (this.#writeError === undefined) {
      await new Promise<void>((resolve) => {
        // The callback comes before the event, or not at all.
        const written = (error?: Error | null): void => {
          this.#writeError ??= this.#stdout.errored ?? error ?? undefined; // `error` may only say that it is destroyed
          resolve();
        };
        this.#stdout.once('error', written);
        this.#stdout.write('', written);
      });
    }
    return this.#writeError === undefined ? undefined : codeOf(this.#writeError);
  }

  /** For people. */
  note(text: string): void {
    this.#noteTo(printable(text));
  }

  /** Notes go elsewhere for a while: a line of its own would tear a progress bar. Without an argument, to stderr again. */
  sendNotes(to: (text: string) => void = this.#toStderr): void {
    this.#noteTo = to;
  }

  readonly #toStderr = (text: string): void => {
    this.#stderr.write(`${text}\n`);
  };

  /** The verdicts of checks. */
  #colored(text: string): string {
    if (!this.#hasColor) return text;
    return text.replaceAll(/^[✓✗]/gm, (mark) =>
      // The stream is checked above; Node.js 22 would check its own stdout.
      styleText(mark === '✓' ? 'green' : 'red', mark, { validateStream: false }),
    );
  }

  /** Data is for programs and keeps every character, except on a terminal. */
  #data(text: string): string {
    return this.#stdout.isTTY === true ? printable(text) : text;
  }

  /** For people – what they were not told yet –, and for programs unless they have the command's answer already. */
  failure(error: unknown, isTold = false): void {
    const message = messageOf(error);
    if (!isTold) this.note(message);
    if (!this.json || this.#answered) return;
    this.#stdout.write(`${this.#data(JSON.stringify({ error: { code: codeOf(error), message } }))}\n`);
  }
}

/** Rows with their columns below each other. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A value of the service or of a file, on one line and without control characters, those of the text direction among them. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}

/** Lines without the characters by which the service, or a file, could steer the terminal or turn its text around. */
export function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}

export function date(value: Date | undefined): string {
  return value === undefined ? '' : value.toISOString().replace(/\.\d{3}/, '');
}

/** Such as `3 d 4 h`, `2 min 5 s`. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const;
  let rest = seconds;
  const parts = units.flatMap(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count > 0 ? [`${count} ${unit}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 s';
}

export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
