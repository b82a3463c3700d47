// An app as `nest new` creates it.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { manifestOf } from '../manifest.js';
import { root, runAsync, tarballOf, type Packed } from '../packed.js';

/** Yarn refuses to install where the registry lacks a package for another platform: what the workspace takes instead. */
const { overrides } = manifestOf(root);

/** Creates the app that the Nest CLI of this version creates. @returns its folder, without installed packages */
export async function scaffold(folder: string, nest: string): Promise<string> {
  const name = `nest-${nest}`;
  const flags = ['--skip-git', '--skip-install', '--package-manager', 'npm'];
  await runAsync('npx', ['--yes', `@nestjs/cli@${nest}`, 'new', name, ...flags], folder);
  return join(folder, name);
}

/** Packages of ours that others of ours depend on. */
const DEPENDED_ON = ['nestjs-debate-space'];

/** Copies a scaffold. pnpm and Yarn take our tarballs also where one of our packages depends on another. */
export function copyScaffold(source: string, target: string, packed: readonly Packed[]): void {
  cpSync(source, target, { recursive: true });
  const manifest = manifestOf(target);
  const own = DEPENDED_ON.map((name) => [name, `file:${tarballOf(packed, name)}`] as const);
  const resolutions = { ...overrides, ...Object.fromEntries(own) };
  writeFileSync(join(target, 'package.json'), JSON.stringify({ ...manifest, resolutions }, null, 2));
}

/** Every file of an app that a developer edits, by its path. */
export function filesOf(place: string): Map<string, string> {
  const paths = [...filesIn(place)].filter((path) => !/\b(package-lock|pnpm-lock|yarn)\.\w+$/.test(path));
  return new Map(paths.map((path) => [relative(place, path), readFileSync(path, 'utf8')]));
}

function* filesIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === 'dist') continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else yield path;
  }
}

type Files = ReadonlyMap<string, string>;

/** The paths of files that one of two states lacks, or that differ. */
export function changedFiles(before: Files, after: Files): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path)).toSorted();
}
