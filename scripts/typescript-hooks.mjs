// Finds and compiles the TypeScript of this workspace for typescript.mjs.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const root = new URL('../', import.meta.url);
const support = new URL('test/support/', root);
const cache = new URL('node_modules/.cache/typescript-hooks/', root);
const settings = ['tsconfig.json', 'node_modules/typescript/package.json'].map(textIn).join('');
mkdirSync(cache, { recursive: true });

export function resolve(specifier, context, next) {
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && !context.parentURL.includes('/node_modules/')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return { url: source.href, shortCircuit: true };
  }
  const [, file] = /^#support\/(.*)\.js$/.exec(specifier) ?? [];
  if (file) return { url: new URL(`${file}.ts`, support).href, shortCircuit: true };
  return next(specifier, context);
}

/** Dozens of processes are started: what one has compiled the next ones read, and need not load the compiler. */
export function load(url, context, next) {
  const [file] = url.split('?');
  if (!file.endsWith('.ts')) return next(url, context);
  const source = readFileSync(new URL(file), 'utf8');
  const hash = createHash('sha256').update(settings).update(file).update(source).digest('hex');
  const compiled = new URL(`${hash}.js`, cache);
  if (!existsSync(compiled)) keep(compiled, compile(fileURLToPath(file), source));
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
