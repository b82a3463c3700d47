// Publishes the packages to npm. The versions are those that `npx changeset version` has written.
import { withPacked } from './driver.js';
import { run, tarballOf } from './packed.js';
import { refusePlaceholder, repositoryUrl } from './staged.js';

/** Each after those that it depends on. */
const names = ['debate-space-simulator', 'nestjs-debate-space', 'debate-space'];

refusePlaceholder(repositoryUrl());
await withPacked(async (_, packed) => {
  for (const name of names) {
    const options = ['--provenance', '--access', 'public', ...process.argv.slice(2)];
    await run('npm', ['publish', tarballOf(packed, name), ...options]);
    console.log(`✓ ${name} is published`);
  }
}, names);
