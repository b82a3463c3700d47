import { rm, writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../.env.demo', import.meta.url));
const NAMES = [
  'DEBATE_SPACE_API_KEY',
  'DEBATE_SPACE_SECRET_KEY',
  'DEBATE_SPACE_APPLICATION_NAME',
  'DEBATE_SPACE_AUTH_URL',
];

/**
 * What the command line needs to work on the demo, in a file that only the user of this process may read. The end of
 * the demo removes it.
 */
export class CommandLineSettings implements AsyncDisposable {
  /** As it is typed in the current folder. */
  readonly path = relative('', FILE);

  static async write(storage: string): Promise<CommandLineSettings> {
    const settings: NodeJS.ProcessEnv = { ...process.env, DEBATE_SPACE_STORAGE: storage };
    const lines = ['DEBATE_SPACE_STORAGE', ...NAMES].flatMap((name) => {
      const value = settings[name] ?? '';
      return value === '' ? [] : [`${name}='${value}'\n`];
    });
    await rm(FILE, { force: true }); // an older file may have other permissions
    await writeFile(FILE, lines.join(''), { mode: 0o600 });
    return new CommandLineSettings();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(FILE, { force: true });
  }
}
