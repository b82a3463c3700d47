// The package managers with which apps adopt the plugin. npm is on every machine; the others come from the registry.
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runAsync } from '../packed.js';

/** Of a developer's machine: in CI, pnpm refuses to change its lock file. */
const environment: NodeJS.ProcessEnv = { ...process.env, CI: undefined };

export class PackageManager {
  readonly #addArgs: readonly string[];
  readonly #env: NodeJS.ProcessEnv;

  constructor(
    readonly name: string,
    addArgs: readonly string[],
    PATH = environment.PATH,
  ) {
    this.#addArgs = addArgs;
    this.#env = { ...environment, PATH };
  }

  /** Installs what the manifest in `place` has, and `wanted`. */
  add(place: string, wanted: readonly string[]): Promise<string> {
    return runAsync(this.name, [...this.#addArgs, ...wanted], place, this.#env);
  }

  /** Runs a script of the manifest in `place`. */
  runScript(place: string, script: string): Promise<string> {
    return runAsync(this.name, ['run', script], place, this.#env);
  }

  /** Runs an installed command. @returns what it prints */
  exec(place: string, command: string, args: readonly string[]): Promise<string> {
    return runAsync(join(place, 'node_modules/.bin', command), args, place, this.#env);
  }
}

export const npm = new PackageManager('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error']);

/** Installs pnpm and yarn into `folder`. `nest add` finds them in `PATH`, as it does on a developer's machine. */
export async function otherPackageManagers(folder: string): Promise<Record<'pnpm' | 'yarn', PackageManager>> {
  const place = join(folder, 'package-managers');
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true }));
  await npm.add(place, ['pnpm@10', 'yarn@1']);
  const PATH = [join(place, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  return {
    pnpm: new PackageManager('pnpm', ['add', '--reporter=append-only'], PATH),
    yarn: new PackageManager('yarn', ['add', '--silent', '--non-interactive'], PATH),
  };
}
