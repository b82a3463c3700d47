import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const settings = new URL('tsconfig.programs.json', import.meta.url);
let compiled: URL | undefined;

/** The folder of the app programs as JavaScript: some 250 processes are started, and each would compile at its start. */
export function programs(): URL {
  if (compiled) return compiled;
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', fileURLToPath(settings)], { stdio: 'inherit' });
  return (compiled = new URL('../../node_modules/.cache/test-crash/test-crash/', import.meta.url));
}
