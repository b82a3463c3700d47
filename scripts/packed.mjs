// The packages as their users get them, for apps in folders of their own.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Of the workspace. */
export const root = fileURLToPath(new URL('..', import.meta.url));
export const packages = ['nestjs-debate-space', 'debate-space-simulator'];
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];

/** Packs every package into a folder. @returns what npm says of each, and where its tarball is */
export function packInto(folder) {
  const workspaces = packages.flatMap((name) => ['-w', name]);
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
    throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed:\n${error.stdout}\n${error.stderr}`, {
      cause: error,
    });
  }
}
