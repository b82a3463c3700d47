// Resolves and compiles for typescript.mjs, as jest.config.js has it for the tests.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const root = new URL('../../', import.meta.url);
const cache = new URL('node_modules/.cache/typescript-hooks/', root);
const settings = ['tsconfig.json', 'node_modules/typescript/package.json'].map(textIn).join('');
mkdirSync(cache, { recursive: true });

export function resolve(specifier, context, next) {
  const [, part = 'index'] = /^nestjs-debate-space(?:\/([\w-]+))?$/.exec(specifier) ?? [];
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

/** The tests start dozens of processes: what one has compiled the next ones read, and need not load the compiler. */
export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const source = readFileSync(new URL(url), 'utf8');
  const hash = createHash('sha256').update(settings).update(url).update(source).digest('hex');
  const compiled = new URL(`${hash}.js`, cache);
  if (!existsSync(compiled)) keep(compiled, compile(fileURLToPath(url), source));
  return { format: 'module', source: readFileSync(compiled, 'utf8'), shortCircuit: true };
}

function compile(fileName, source) {
  const ts = require('typescript');
  const { config } = ts.parseConfigFileTextToJson('tsconfig.json', textIn('tsconfig.json'));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, fileURLToPath(root));
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext, inlineSourceMap: true };
  return ts.transpileModule(source, { fileName, compilerOptions }).outputText;
}

/** Under its name only when it is complete: other processes may be about to read it. */
function keep(file, text) {
  const draft = new URL(`${randomUUID()}.js`, cache);
  writeFileSync(draft, text);
  renameSync(draft, file);
}

function textIn(path) {
  return readFileSync(new URL(path, root), 'utf8');
}
