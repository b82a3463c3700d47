// The README's snippets as files of an app.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../packed.mjs';

/** The snippets whose first line names a file. `nest add` writes the one that edits the app's own module. */
export function readmeFiles() {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const fences = [...readme.matchAll(/^```ts\n\/\/ (\S+\.ts)\n(.*?)^```/gms)];
  const files = new Map(fences.map(([, path, code]) => [path, code]));
  if (!files.delete('src/app.module.ts')) throw new Error('the README shows no src/app.module.ts');
  if (!files.has('test/debate-space.e2e-spec.ts')) throw new Error('the README shows no end-to-end test');
  return files;
}

/**
 * Writes a file as an app of this format has it: CommonJS leaves `.js` out of relative imports, and without
 * `esModuleInterop` there are no default imports from CommonJS packages.
 */
export function writeSource(place, path, code, { isEsm, hasInterop }) {
  const withPaths = isEsm ? code : code.replaceAll(/(?<=from '\.[^']*)\.js(?=')/g, '');
  const withImports = hasInterop
    ? withPaths
    : withPaths.replaceAll(/^import (\w+) from '([^']+)';$/gm, "import $1 = require('$2');");
  mkdirSync(dirname(join(place, path)), { recursive: true });
  writeFileSync(join(place, path), withImports);
}
