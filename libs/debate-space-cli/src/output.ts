import { pipeline } from 'node:stream/promises';
import type { CliIo } from './cli-context.js';
import { codeOf, Failure } from './failure.js';
import { textInVariables, variables } from './settings.js';

/**
 * Prints the answer of a command to stdout, for people or – with `--json` – as JSON and nothing else. Everything else goes to
 * stderr. Text of the service never reaches a terminal with its control characters.
 */
export class Output {
  /** Whether the answer is JSON. */
  json = false;
  readonly #stdout: CliIo['stdout'];
  readonly #toStderr: (text: string) => void;
  #noteTo: (text: string) => void;
  #answered = false;
  #writeError: unknown;

  constructor({ stdout, stderr }: Pick<CliIo, 'stdout' | 'stderr'>) {
    this.#stdout = stdout.on('error', (error) => {
      this.#writeError ??= error;
    });
    stderr.on('error', () => undefined); // there is nowhere else to report it
    this.#noteTo = this.#toStderr = (text) => void stderr.write(`${text}\n`);
  }

  /** @param text the same for people */
  answer(value: object, text = fields(value)): void {
    this.#answered = true;
    const answer = this.json ? this.#data(JSON.stringify(value, undefined, 2)) : printable(text);
    this.#stdout.write(`${answer}\n`);
  }

  /** One line for each, with `--json` a JSON value on each line. @param columns the heading, for people @returns how many there were */
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
   * Data as it comes. A failure of its source is thrown, also where stdout fails at the same time.
   * @returns whether stdout took all of it; `unwritten` says why not
   */
  async stream(text: AsyncIterable<string>): Promise<boolean> {
    let count = 0;
    let failure: { readonly reason: unknown } | undefined;
    const data = this.#data.bind(this);
    async function* pieces(): AsyncGenerator<string> {
      try {
        for await (const piece of text) {
          count += 1;
          yield data(piece);
        }
      } catch (reason) {
        failure = { reason };
      }
    }
    await pipeline(pieces(), this.#stdout, { end: false }).catch((error: unknown) => {
      if (this.#writeError === undefined) throw error;
    });
    if (failure === undefined) return this.#writeError === undefined;
    if (count > 0) this.note('The answer on stdout is not complete.');
    throw failure.reason;
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
  sendNotes(to = this.#toStderr): void {
    this.#noteTo = to;
  }

  /** For people – what they were not told yet –, and for programs unless they have the command's answer already. */
  failure(error: unknown, isTold = false): void {
    const message = messageOf(error);
    if (!isTold) this.note(message);
    if (!this.json || this.#answered) return;
    this.#stdout.write(`${this.#data(JSON.stringify({ error: { code: codeOf(error), message } }))}\n`);
  }

  /** Data is for programs and keeps every character, except on a terminal. */
  #data(text: string): string {
    return this.#stdout.isTTY === true ? printable(text) : text;
  }
}

/** In words of the command line: variables in place of options, and no method of the plugin. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof Failure) return error.message;
  const { operation } = error as { readonly operation?: string };
  const message = operation === undefined ? error.message : error.message.replace(`${operation}: `, '');
  switch (codeOf(error)) {
    case 'ERR_DEBATE_SPACE_NO_ACCOUNTS':
      return 'The list of accounts has no account of the first users, so every user would be an orphan. Check the file and its --column; if the users really have no account, add --allow-no-match.';
    case 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE':
      return 'The reference is not found; see: npx debate-space erasures list';
    case 'ERR_DEBATE_SPACE_NETWORK':
      return `Cannot reach the debate space${/ \(\w+\)/.exec(message)?.[0] ?? ''}. Check ${variables.authUrl}, or run: npx debate-space doctor`;
    case 'ERR_DEBATE_SPACE_STORAGE':
      return `${textInVariables(message)}. Compare ${variables.storage} with the storage of your app.`;
    default:
      return textInVariables(message);
  }
}

/** Rows with their columns below each other. */
export function table(rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map((row) => row.map(shown));
  const widths = (cells[0] ?? []).map((_, n) => Math.max(...cells.map((row) => row[n]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** What is given of an answer, one field a line. */
export function fields(answer: object): string {
  const given = Object.entries(answer).filter(([, value]) => value !== undefined);
  return table(given.map(([name, value]: [string, unknown]) => [words(name), value]));
}

/** A row for each, below the names of what they have; its hint on a line of its own. */
export function records(items: readonly (object & { readonly hint?: string })[]): string {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))].filter((name) => name !== 'hint');
  const rows = items.map((item: Record<string, unknown>) => names.map((name) => item[name]));
  const lines = table([names.map((name) => words(name).toUpperCase()), ...rows]).split('\n');
  const hinted = lines.map((line, n) => {
    const { hint } = items[n - 1] ?? {}; // none for the names
    return hint === undefined ? line : `${line}\n  → ${shown(textInVariables(hint))}`;
  });
  return hinted.join('\n');
}

/** Such as `not found` of `notFound`. */
function words(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Steers a terminal, breaks a line, or turns its text around. */
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** A value of the service, of the storage or of a file on one line, with nothing in it that steers a terminal. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (value instanceof Date) return value.toISOString().replace(/\.\d{3}/, '');
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.replaceAll(STEERING, '\uFFFD');
}

/** Lines, each like {@link shown}. All that is printed for people goes through it. */
export function printable(text: string): string {
  return text.replaceAll(/[^\n\t]/gu, (character) => character.replace(STEERING, '\uFFFD'));
}

/** A word that a POSIX shell takes as it is. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${shown(word).replaceAll("'", "'\\''")}'`;
}

/** A command of this command line that can be pasted into a shell. */
export function pasteable(group: string, name: string, argument: string): string {
  const end = argument.startsWith('-') ? '-- ' : ''; // it is not an option
  return `npx debate-space ${group} ${name} ${end}${quoted(argument)}`;
}

/** Such as `3 d 4 h`, `2 min 5 s`. */
export function duration(ms: number): string {
  const units = { d: 86_400, h: 3600, min: 60, s: 1 };
  let rest = Math.round(ms / 1000);
  const parts = Object.entries(units).flatMap(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count > 0 ? [`${count} ${unit}`] : [];
  });
  return parts.slice(0, 2).join(' ') || '0 s';
}

export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
