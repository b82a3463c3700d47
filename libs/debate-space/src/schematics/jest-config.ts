import { posix } from 'node:path';
import type { Tree } from '@angular-devkit/schematics';
import { overwriteJson } from './overwrite.js';

/** Jest in CommonJS mode transforms these packages, which are ESM only. `.pnpm` is the folder where pnpm keeps packages. */
export const ESM_PACKAGES =
  '/node_modules/(?!(.pnpm|nestjs-debate-space|nestjs-session-end|durable-jobs|debate-space-simulator|jose)/)';

interface JestConfig {
  transformIgnorePatterns?: string[];
}

/** Sets `transformIgnorePatterns` in the JSON files that configure jest. */
export function transformEsmPackages(tree: Tree, files: readonly string[]): string[] {
  const line = JSON.stringify({ transformIgnorePatterns: [ESM_PACKAGES] }).slice(1, -1);
  const remaining = ['js', 'cjs', 'mjs', 'ts', 'cts']
    .map((extension) => `jest.config.${extension}`)
    .filter((file) => tree.exists(file));
  const existing = files.map((file) => posix.normalize(file)).filter((file) => tree.exists(file));
  for (const file of new Set(existing)) {
    const content = tree.readJson(file) as JestConfig & { jest?: JestConfig };
    const jest = file === 'package.json' ? content.jest : content;
    if (jest === undefined || jest.transformIgnorePatterns?.includes(ESM_PACKAGES)) continue;
    if (jest.transformIgnorePatterns === undefined) {
      jest.transformIgnorePatterns = [ESM_PACKAGES];
      overwriteJson(tree, file, content);
    } else {
      remaining.push(file);
    }
  }
  return remaining.map((file) => `Jest in ${file} has to transform the packages that are ESM only: ${line}`);
}
