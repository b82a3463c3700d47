// Resolves and compiles for typescript.mjs, as jest.config.js has it for the tests.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = new URL('../../', import.meta.url);
const { config } = ts.readConfigFile(fileURLToPath(new URL('tsconfig.json', root)), (path) =>
  readFileSync(path, 'utf8'),
);
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, fileURLToPath(root));

export function resolve(specifier, context, next) {
  const [, part = 'index'] = /^nestjs-debate-space(?:\/(\w+))?$/.exec(specifier) ?? [];
  if (specifier.startsWith('nestjs-debate-space')) {
    return { url: new URL(`libs/debate-space/src/${part}.ts`, root).href, shortCircuit: true };
  }
  if (specifier === 'debate-space-simulator') {
    const url = new URL('libs/debate-space-simulator/src/index.ts', root).href;
    return { url, shortCircuit: true };
  }
  if (/^\.{1,2}\/.*\.js$/.test(specifier)) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return { url: source.href, shortCircuit: true };
  }
  return next(specifier, context);
}

export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const fileName = fileURLToPath(url);
  const { outputText } = ts.transpileModule(readFileSync(fileName, 'utf8'), {
    fileName,
    compilerOptions: { ...options, module: ts.ModuleKind.ESNext, inlineSourceMap: true },
  });
  return { format: 'module', source: outputText, shortCircuit: true };
}
