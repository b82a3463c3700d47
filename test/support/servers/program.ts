import type { describe, it } from '@jest/globals';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Program {
  /** Where it is; `undefined` when this machine does not have it. */
  readonly path: string | undefined;
  /** `describe`, or a skipped test that `skipped-reporter.js` reports. In CI nothing is skipped: what is missing fails. */
  readonly describe: (name: string, tests: () => void) => void;
}

/** A server that some tests need, found in `PATH` or in one of `places`. */
export function programOf(command: string, product: string, places: readonly string[] = []): Program {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...places];
  const path = folders.map((folder) => join(folder, command)).find(isExecutable);
  return {
    path,
    describe: (name, tests) => {
      // Not imported: scripts start servers, too.
      const jest = globalThis as unknown as { readonly describe: typeof describe; readonly it: typeof it };
      if (path !== undefined || process.env.CI === 'true') {
        jest.describe(name, tests);
        return;
      }
      jest.describe(name, () => {
        jest.it.skip(`needs ${product} (${command})`, () => undefined);
      });
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
