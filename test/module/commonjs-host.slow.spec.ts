import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { scenario } from '#support/hosts/scenario.js';
import { keys } from '#support/service/service.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = join(root, 'libs/debate-space/src');

/** As ts-jest translates the plugin in a host with the tsconfig of `nest new` 10. */
const compilerOptions: ts.CompilerOptions = {
  module: ts.ModuleKind.CommonJS,
  target: ts.ScriptTarget.ES2022,
  esModuleInterop: false,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

const APP = `
  require('reflect-metadata');
  const { Module } = require('@nestjs/common');
  const { NestFactory } = require('@nestjs/core');
  const { DebateSpaceModule, DebateSpaceService, DebateSpaceErasures, DebateSpaceEvents } = require('./index.js');
  const options = JSON.parse(process.argv[2]);
  class App {}
  Module({ imports: [DebateSpaceModule.forRoot(options)] })(App);
  (async () => {
    const app = await NestFactory.createApplicationContext(App, { logger: false });
    const finished = new Promise((resolve) =>
      app.get(DebateSpaceEvents).events$.subscribe(({ type }) => type === 'erasure-finished' && resolve()));
    await app.get(DebateSpaceErasures).request({ uid: 'alice', mode: 'delete' });
    await finished;
    const { users } = await app.get(DebateSpaceService).listUsers();
    console.log(JSON.stringify(users.map(({ uid }) => uid)));
    await app.close();
  })();
`;

describe('a host that translates the plugin to CommonJS without esModuleInterop', () => {
  const scene = scenario();
  let folder: string;
  beforeAll(() => {
    const places = join(root, 'libs/debate-space/node_modules/.cache'); // where Node.js finds the plugin's packages
    mkdirSync(places, { recursive: true });
    folder = mkdtempSync(join(places, 'commonjs-host-'));
    for (const path of readdirSync(sources, { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path.endsWith('.d.ts') || path.endsWith('.spec.ts')) continue;
      const { outputText } = ts.transpileModule(readFileSync(join(sources, path), 'utf8'), {
        compilerOptions,
        fileName: path,
      });
      const file = join(folder, path.replace(/\.ts$/, '.js'));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, outputText);
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
    writeFileSync(join(folder, 'app.js'), APP);
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['our own adapter', {}],
    ["axios's adapter 'http'", { adapter: 'http' }],
  ])('logs a user out, erases and lists through %s', async (_what, http) => {
    const { service } = scene;
    const options = { ...keys, applicationName: 'demo', authUrl: service.url, http };
    const args = ['--disable-warning=ExperimentalWarning', join(folder, 'app.js'), JSON.stringify(options)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(JSON.parse(stdout)).toEqual(['bob']);
    expect(service.received.all.every(({ accepted }) => accepted)).toBe(true);
    expect(service.received.of('logout')).toHaveLength(1);
  });

  it('opens a tunnel through a proxy', async () => {
    const script = `
      const { Transport } = require('./service/http/transport.js');
      const request = { method: 'GET', url: 'https://debate.invalid/', headers: {} };
      new Transport(5000).exchange(request, new AbortController().signal).catch(({ name, reason, outcome }) => {
        console.log(JSON.stringify({ name, reason, outcome }));
        process.exit();
      });
    `;
    writeFileSync(join(folder, 'tunnel.js'), script);
    const env = { ...process.env, HTTPS_PROXY: 'http://127.0.0.1:1' }; // nobody listens there
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'tunnel.js')], { env });
    const failure = { name: 'NetworkError', reason: 'ECONNREFUSED', outcome: 'not-sent' };
    expect(JSON.parse(stdout)).toEqual(failure);
  });
});

describe('the sources of the plugin', () => {
  it('import no default from a package in CommonJS, nor from Node.js', () => {
    const found = readdirSync(sources, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.spec.ts'))
      .flatMap((path) => defaultImports(readFileSync(join(sources, path), 'utf8')))
      .filter((name) => name.startsWith('node:') || !isEsm(name));
    expect(found).toEqual([]);
  });
});

/** The packages of which a file imports the default, not as a type only. */
function defaultImports(code: string): string[] {
  const { statements } = ts.createSourceFile('file.ts', code, ts.ScriptTarget.Latest);
  return statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
    const { importClause, moduleSpecifier } = statement;
    const isDefault =
      importClause?.name !== undefined && importClause.phaseModifier !== ts.SyntaxKind.TypeKeyword;
    return isDefault && !moduleSpecifier.text.startsWith('.') ? [moduleSpecifier.text] : [];
  });
}

function isEsm(name: string): boolean {
  const [scope = '', rest = ''] = name.split('/');
  const path = scope.startsWith('@') ? `${scope}/${rest}` : scope;
  const text = readFileSync(join(root, 'node_modules', path, 'package.json'), 'utf8');
  return (JSON.parse(text) as { type?: string }).type === 'module';
}
