import * as jestGlobals from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/** The text of a page of the documentation, such as `docs/sessions.md`. */
export function pageOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/** The README and all pages of `docs/`, by their paths. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(new URL('../../docs/', import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`)
    .toSorted(),
];

/** A fenced snippet of a page. */
export interface Fence {
  readonly language: string;
  readonly code: string;
}

/** The snippets of a page, also those inside a list. */
export function fencesOf(page: string): Fence[] {
  const found = pageOf(page).matchAll(/^( *)```(\S*)\n(.*?)^\1```$/gms);
  return [...found].map(([, indent = '', language = '', code = '']) => ({
    language,
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

/** Runs code of a page, in which these names are known. */
export function runCode(code: string, names: Readonly<Record<string, unknown>>): unknown {
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- code of this repository; `node:vm` has other arrays
  const compiled = new Function(...Object.keys(names), code) as (...values: unknown[]) => unknown;
  return compiled(...Object.values(names));
}

/**
 * Runs a file of `docs/examples/recipes`.
 * @param modules what it may import, by name
 * @returns what it exports
 */
export function runRecipe(name: string, modules: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const code = pageOf(`docs/examples/recipes/${name}`);
  const compilerOptions: ts.CompilerOptions = {
    module: ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2023,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  const { outputText } = ts.transpileModule(code, { compilerOptions });
  const exports = {};
  runCode(outputText, { ...jestGlobals, exports, require: (name: string) => modules[name] });
  return exports;
}
