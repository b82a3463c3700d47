// What stands in a tarball, and whether its manifest fits it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { root } from '../packed.mjs';

const NOT_FOR_USERS = /\.spec\.|\/src\/|tsconfig|\.env/;

export async function checkContents({ name, files, version, size }, needed) {
  const paths = files.map(({ path }) => path);
  for (const wanted of ['README.md', 'LICENSE', 'CHANGELOG.md', ...needed]) {
    if (!paths.includes(wanted)) throw new Error(`${name}: the package has no ${wanted}`);
  }
  const stray = paths.filter((path) => NOT_FOR_USERS.test(path));
  if (stray.length > 0) throw new Error(`${name}: the package has ${stray.join(', ')}`);
  const pkgDir = join(root, 'node_modules', name);
  checkSubpaths(JSON.parse(readFileSync(join(pkgDir, 'package.json'), 'utf8')));
  await lint(name, pkgDir);
  console.log(
    `✓ ${name}@${version}: ${paths.length} files, ${Math.round(size / 1024)} KiB, publint has nothing to say`,
  );
}

/** TypeScript with `"module": "commonjs"` does not read `exports`: it finds the types of a subpath in `typesVersions`. */
function checkSubpaths({ name, exports = {}, typesVersions = {} }) {
  const subpaths = Object.entries(exports).filter(([path, { types }]) => path !== '.' && types !== undefined);
  const types = Object.fromEntries(subpaths.map(([path, target]) => [path.slice(2), [target.types]]));
  assert.deepEqual(typesVersions['*'] ?? {}, types, `${name}: exports and typesVersions differ`);
}

async function lint(name, pkgDir) {
  const { messages, pkg } = await publint({ pkgDir, strict: true });
  if (messages.length === 0) return;
  throw new Error(`publint, ${name}:\n${messages.map((message) => formatMessage(message, pkg)).join('\n')}`);
}
