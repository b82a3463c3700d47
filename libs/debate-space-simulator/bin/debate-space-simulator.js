#!/usr/bin/env node
// In the repository, unlike dist/: npm links a command only when its file exists at the installation.
import { existsSync } from 'node:fs';

const program = new URL('../dist/cli.js', import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  console.error(
    'debate-space-simulator is not built. Run `npm run build` in the root of the repository first.',
  );
  process.exitCode = 1;
}
