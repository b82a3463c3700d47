// The packages as their users get them, for apps in folders of their own.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stage } from './staged.js';

/** Of the workspace. */
export const root = fileURLToPath(new URL('..', import.meta.url));
/** What an app with the plugin installs. */
export const packages = ['nestjs-debate-space', 'debate-space-simulator'];
/** What npm has downloaded once, for another app or by another script, it does not ask the registry for again. */
export const NPM_ADD = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
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
export async function packInto(folder: string, names: readonly string[] = packages): Promise<Packed[]> {
  const places = new Map(names.map((name) => [name, stage(name, join(folder, 'staged'))]));
  const args = ['pack', '--json', '--pack-destination', folder, ...places.values()];
  const packed = JSON.parse(await run('npm', args, folder)) as Readonly<Record<string, NpmPacked>>;
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

/** Installs what the manifest in `place` has, and `wanted`, by npm. */
export async function install(place: string, wanted: readonly string[] = []): Promise<void> {
  await run('npm', [...NPM_ADD, ...wanted], place);
}

/** @returns what the command prints; an error has all of it */
export async function run(
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
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    const printed = `${String(stdout)}\n${String(stderr)}`;
    throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed:\n${printed}`, { cause: error });
  }
}
