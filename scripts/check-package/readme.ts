// The snippets of the README and of the pages for beginners as files of an app.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../packed.js';

const pages = [
  'README.md',
  'docs/getting-started.md',
  'docs/erasure-for-engineers.md',
  'docs/testing-your-app.md',
];

/** The snippets whose first line names a file. `nest add` writes the one that edits the app's own module. */
export function readmeFiles(): Map<string, string> {
  const text = pages.map((page) => readFileSync(join(root, page), 'utf8')).join('\n');
  const fences = [...text.matchAll(/^```ts\n\/\/ (\S+\.ts)\n(.*?)^```/gms)];
  const files = new Map(fences.map(([, path = '', code = '']) => [path, code]));
  // The app has a main.ts of its own; `nest add` edits its module.
  for (const own of ['src/main.ts', 'src/main-fastify.ts', 'src/app.module.ts']) {
    if (!files.delete(own)) throw new Error(`docs/getting-started.md shows no ${own}`);
  }
  for (const path of ['src/debate-erasure.controller.ts', 'test/debate-space.e2e-spec.ts']) {
    if (!files.has(path)) throw new Error(`no page shows ${path}`);
  }
  return files;
}

interface Format {
  readonly isEsm: boolean;
  readonly hasInterop: boolean;
}

/**
 * Writes a file as an app of this format has it: CommonJS leaves `.js` out of relative imports, and without
 * `esModuleInterop` there are no default imports from CommonJS packages.
 */
export function writeSource(place: string, path: string, code: string, { isEsm, hasInterop }: Format): void {
  const withPaths = isEsm ? code : code.replaceAll(/(?<=from '\.[^']*)\.js(?=')/g, '');
  const withImports = hasInterop
    ? withPaths
    : withPaths.replaceAll(/^import (\w+) from '([^']+)';$/gm, "import $1 = require('$2');");
  mkdirSync(dirname(join(place, path)), { recursive: true });
  writeFileSync(join(place, path), withImports);
}
