import * as jestGlobals from '@jest/globals';
import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** The text of a page of the documentation, such as `docs/gdpr.md`. */
export function pageOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/** Runs code of a page, in which these names are known. */
export function runCode(code: string, names: Readonly<Record<string, unknown>>): unknown {
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- code of this repository; `node:vm` has other arrays
  const compiled = new Function(...Object.keys(names), code) as (...values: unknown[]) => unknown;
  return compiled(...Object.values(names));
}

/**
 * Runs a snippet of a page that begins with this path.
 * @param modules what it may import, by name
 * @returns what it exports
 */
export function runSnippet(
  page: string,
  path: string,
  modules: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const [, code] = new RegExp(`^\`\`\`ts\n// ${path}\n(.*?)^\`\`\``, 'ms').exec(page) ?? [];
  if (code === undefined) throw new Error(`the page has no snippet ${path}`);
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
