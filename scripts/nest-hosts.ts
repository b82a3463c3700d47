// Hosts with NestJS 10, 11 and 12 in folders of their own: the packed tarballs, and the versions of the session libraries
// that belong to that NestJS.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { newApp } from './driver.js';
import { manifestOf } from './manifest.js';
import { install, packages, root } from './packed.js';

const { devDependencies = {} } = manifestOf(root);
const fastify4 = {
  '@fastify/cookie': '^9',
  '@fastify/passport': '^2',
  '@fastify/secure-session': '^7',
  '@fastify/session': '^10', // leaves the old session alive in `regenerate`
};
const fastify5 = Object.fromEntries(Object.keys(fastify4).map((name) => [name, devDependencies[name]]));
export interface Host {
  readonly nest: string;
  readonly type: 'commonjs' | 'module';
  readonly fastify: Readonly<Record<string, string | undefined>>;
  /** Those that it runs on unless all are wanted. */
  readonly nodes: readonly string[];
}

export const hosts: readonly Host[] = [
  { nest: '10', type: 'commonjs', fastify: fastify4, nodes: ['20'] },
  { nest: '11', type: 'commonjs', fastify: fastify5, nodes: ['22'] },
  { nest: '12', type: 'module', fastify: fastify5, nodes: ['24'] },
];
const nestPackages = ['common', 'core', 'platform-express', 'platform-fastify'].map(
  (name) => `@nestjs/${name}`,
);
/** As this workspace has them. */
const others = [
  ...['@codegenie/serverless-express', '@fastify/aws-lambda', 'bson', 'cookie-session', 'express-session'],
  ...['express-ws', 'iron-session', 'keygrip', 'passport', 'reflect-metadata', 'rxjs', 'socket.io'],
  ...['socket.io-client', 'tough-cookie', 'ws'],
];

/** Installs the packages in a folder of its own. @param more names of further packages, as this workspace has them */
export async function installHost(
  { nest, type, fastify }: Host,
  folder: string,
  tarballs: readonly string[],
  more: readonly string[] = [],
): Promise<string> {
  const dependencies = Object.fromEntries<string | undefined>([
    ...nestPackages.map((name) => [name, `^${nest}`] as const),
    ...[...others, ...more].map((name) => [name, devDependencies[name]] as const),
    ...Object.entries(fastify),
  ]);
  const place = newApp(folder, `nest-${nest}`, { type, dependencies });
  await install(place, tarballs);
  return place;
}

/** What is installed in the folder of a host, with the versions. */
export function versionsIn(place: string, { fastify }: Host): string[] {
  const names = [...packages, ...nestPackages, 'express', 'fastify', ...Object.keys(fastify), ...others];
  return names.map((name) => `${name} ${manifestOf(join(place, 'node_modules', name)).version}`);
}

/** A file and what it imports of ours. Types are checked in the workspace; a host of this kind loads this format. */
export function transpile(place: string, type: Host['type'], file: string, done = new Set<string>()): void {
  if (done.has(file)) return;
  done.add(file);
  const compilerOptions = {
    module: type === 'module' ? ts.ModuleKind.ESNext : ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2023,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    esModuleInterop: true,
  };
  const transpiled = ts.transpileModule(readFileSync(join(root, file), 'utf8'), { compilerOptions });
  // The host has only the files of test/support that are needed.
  const support = relative(dirname(file), 'test/support');
  const outputText = transpiled.outputText.replaceAll(/(["'])#support\//g, `$1${support}/`);
  const target = join(place, file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, outputText);
  for (const [, path] of outputText.matchAll(/(?:from |require\()["'](\..+)\.js["']/g))
    transpile(place, type, `${join(dirname(file), String(path))}.ts`, done);
}
