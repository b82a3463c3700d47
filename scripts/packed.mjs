// The packages as their users get them, for apps in folders of their own.
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Of the workspace. */
export const root = fileURLToPath(new URL('..', import.meta.url));
export const packages = ['nestjs-debate-space', 'debate-space-simulator'];
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Packs packages into a folder. @returns what npm says of each, and where its tarball is */
export function packInto(folder, names = packages) {
  const workspaces = names.flatMap((name) => ['-w', name]);
  const packed = JSON.parse(
    run('npm', ['pack', '--json', '--pack-destination', folder, ...workspaces], root),
  );
  return Object.values(packed).map((each) => ({ ...each, tarball: join(folder, each.filename) }));
}

export function install(place, wanted = []) {
  run('npm', ['install', ...QUIET, ...wanted], place);
}

/** @returns what the command prints; an error has all of it */
export function run(command, args, cwd) {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw failure(command, args, error);
  }
}

/** Like `run`, while other commands run. @returns a promise of what the command prints */
export async function runAsync(command, args, cwd, env = process.env) {
  const running = promisify(execFile)(command, args, { cwd, env, maxBuffer: MAX_OUTPUT_BYTES });
  running.child.stdin.end(); // nothing may ask
  try {
    return (await running).stdout;
  } catch (error) {
    throw failure(command, args, error);
  }
}

function failure(command, args, error) {
  return new Error(`${command} ${args.slice(0, 3).join(' ')} failed:\n${error.stdout}\n${error.stderr}`, {
    cause: error,
  });
}
