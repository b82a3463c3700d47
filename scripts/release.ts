// Publishes the packages to npm. The versions are those that `npx changeset version` has written.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packInto, run, tarballOf } from './packed.js';
import { refusePlaceholder, repositoryUrl } from './staged.js';

/** Each after those that it depends on. */
const names = ['debate-space-simulator', 'nestjs-debate-space', 'debate-space'];

refusePlaceholder(repositoryUrl());
const folder = mkdtempSync(join(tmpdir(), 'debate-space-release-'));
try {
  const packed = packInto(folder, names);
  for (const name of names) {
    run('npm', [
      'publish',
      tarballOf(packed, name),
      '--provenance',
      '--access',
      'public',
      ...process.argv.slice(2),
    ]);
    console.log(`✓ ${name} is published`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
