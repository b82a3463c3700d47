// The packages as their users get them, for apps in folders of their own.
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stage } from './staged.js';

/** Of the workspace. */
export const root = fileURLToPath(new URL('..', import.meta.url));
/** What an app with the plugin installs. */
export const packages = ['nestjs-debate-space', 'debate-space-simulator'];
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** What npm says of a package that it has packed. */
interface NpmPacked {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

export interface Packed extends NpmPacked {
  /** Where it is. */
  readonly tarball: string;
  /** The folder that was packed. */
  readonly place: string;
}

/** Packs packages into a folder. */
export function packInto(folder: string, names: readonly string[] = packages): Packed[] {
  const places = new Map(names.map((name) => [name, stage(name, join(folder, 'staged'))]));
  const printed = run('npm', ['pack', '--json', '--pack-destination', folder, ...places.values()], folder);
  const packed = JSON.parse(printed) as Readonly<Record<string, NpmPacked>>;
  return Object.values(packed).map((each) => ({
    ...each,
    tarball: join(folder, each.filename),
    place: places.get(each.name) ?? '',
  }));
}

/** Where one of these packages is. */
export function tarballOf(packed: readonly Packed[], name: string): string {
  const { tarball } = packed.find((each) => each.name === name) ?? {};
  if (tarball === undefined) throw new Error(`${name} is not packed`);
  return tarball;
}

export function install(place: string, wanted: readonly string[] = []): void {
  run('npm', ['install', ...QUIET, ...wanted], place);
}

/** @returns what the command prints; an error has all of it */
export function run(command: string, args: readonly string[], cwd?: string): string {
  try {
    return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw failure(command, args, error);
  }
}

/** Like `run`, while other commands run. @returns a promise of what the command prints */
export async function runAsync(
  command: string,
  args: readonly string[],
  cwd?: string,
  env = process.env,
): Promise<string> {
  const running = promisify(execFile)(command, args, { cwd, env, maxBuffer: MAX_OUTPUT_BYTES });
  running.child.stdin?.end(); // nothing may ask
  try {
    return (await running).stdout;
  } catch (error) {
    throw failure(command, args, error);
  }
}

/** @param error with what the command has printed */
function failure(command: string, args: readonly string[], error: unknown): Error {
  const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
  const printed = `${String(stdout)}\n${String(stderr)}`;
  return new Error(`${command} ${args.slice(0, 3).join(' ')} failed:\n${printed}`, { cause: error });
}
