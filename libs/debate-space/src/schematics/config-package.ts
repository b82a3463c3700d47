import type { SchematicContext, Tree } from '@angular-devkit/schematics';
import { overwriteJson } from './overwrite.js';

const NAME = '@nestjs/config';

interface Manifest {
  dependencies?: Record<string, string>;
}

/** Adds @nestjs/config to package.json, and installs it with the package manager of the lock file. */
export function requireConfigPackage(tree: Tree, context: SchematicContext): string[] {
  const manifest = tree.readJson('package.json') as Manifest;
  const dependencies = manifest.dependencies ?? {};
  if (dependencies[NAME] !== undefined) return [];
  const [major] = /\d+/.exec(dependencies['@nestjs/common'] ?? '') ?? [];
  if (major === undefined) return [`Install ${NAME}.`];
  const range = Number(major) < 12 ? '^4.0.0' : '^12.0.0'; // 12 is ESM only, like NestJS 12
  const sorted = Object.entries({ ...dependencies, [NAME]: range }).toSorted(([a], [b]) => (a < b ? -1 : 1));
  manifest.dependencies = Object.fromEntries(sorted);
  overwriteJson(tree, 'package.json', manifest);
  // The task of @angular-devkit/schematics/tasks, which only its own dependents can import under pnpm.
  const options = {
    command: 'install',
    quiet: true,
    hideOutput: true,
    packageManager: packageManagerOf(tree),
  };
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options }) });
  return [];
}

function packageManagerOf(tree: Tree): string {
  if (tree.exists('pnpm-lock.yaml')) return 'pnpm';
  if (tree.exists('yarn.lock')) return 'yarn';
  return 'npm';
}
