// What stands in a tarball, and whether its manifest fits it.
import assert from 'node:assert/strict';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { manifestOf, type Manifest } from '../manifest.js';
import { root, run, type Packed } from '../packed.js';

const NOT_FOR_USERS = /\.spec\.|\/src\/|tsconfig|\.env|\.png/;
const MAX_KB = 350;

const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'nestjs-debate-space': [
    ...['dist/index.js', 'dist/index.d.ts', 'dist/sqlite-worker.js', 'schematics/collection.json'],
    // Messages name these pages.
    ...['getting-started', 'erasure-recipes', 'options', 'deploying', 'troubleshooting'].map(
      (page) => `docs/${page}.md`,
    ),
  ],
  'debate-space-simulator': ['dist/index.js', 'dist/index.d.ts'],
  'debate-space': ['bin/debate-space.js', 'dist/cli.js'],
};

export async function checkContents({ name, files, version, size, tarball, place }: Packed): Promise<void> {
  const paths = files.map(({ path }) => path);
  for (const wanted of ['README.md', 'LICENSE', 'CHANGELOG.md', ...(NEEDED[name] ?? [])])
    assert.ok(paths.includes(wanted), `${name}: the package has no ${wanted}`);
  const stray = paths.filter((path) => NOT_FOR_USERS.test(path));
  assert.deepEqual(stray, [], `${name}: not for users`);
  checkSubpaths(manifestOf(place));
  await lint(name, place);
  const hasTypes = paths.some((path) => path.endsWith('.d.ts'));
  if (hasTypes) await run('npx', ['attw', tarball, '--profile', 'esm-only'], root);
  const kb = Math.round(size / 1000);
  assert.ok(kb <= MAX_KB, `${name}: the package has ${kb} kB, and may have ${MAX_KB}`);
  console.log(`✓ ${name}@${version}: ${paths.length} files, ${kb} kB; publint and attw find nothing`);
}

/** TypeScript with `"module": "commonjs"` does not read `exports`: it finds the types of a subpath in `typesVersions`. */
function checkSubpaths({ name, exports = {}, typesVersions = {} }: Manifest): void {
  const subpaths = Object.entries(exports).filter(([path, { types }]) => path !== '.' && types !== undefined);
  const types = Object.fromEntries(subpaths.map(([path, target]) => [path.slice(2), [target.types]]));
  assert.deepEqual(typesVersions['*'] ?? {}, types, `${name}: exports and typesVersions differ`);
}

async function lint(name: string, pkgDir: string): Promise<void> {
  const { messages, pkg } = await publint({ pkgDir, strict: true });
  const found = messages.map((message) => formatMessage(message, pkg));
  assert.deepEqual(found, [], `publint, ${name}`);
}
