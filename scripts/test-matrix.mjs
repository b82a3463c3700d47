// Plays every row of the table of endings (test/support/ending-stacks.ts) on every stack under NestJS 10, 11 and 12:
// in hosts that have the packed tarballs and the versions of the session libraries that belong to that NestJS.
// Options: `--storage` memory (default), lmdb, redis or postgres; `--nest` 10, 11 or 12 for that one alone.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { install, packages, packInto, root } from './packed.mjs';
import { PostgresServer } from './test-crash/postgres.mjs';
import { RedisServer } from './test-crash/redis.mjs';
import { report } from './test-matrix/report.mjs';

const { values } = parseArgs({
  options: { storage: { type: 'string', default: 'memory' }, nest: { type: 'string' } },
});
/** The package of each one's client, and its server. */
const storages = {
  memory: {},
  lmdb: { client: 'lmdb' },
  redis: { client: 'redis', server: () => new RedisServer('always') },
  postgres: { client: 'pg', server: () => new PostgresServer() },
};
const nestPackages = ['common', 'core', 'platform-express', 'platform-fastify'].map(
  (name) => `@nestjs/${name}`,
);
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const fastify4 = {
  '@fastify/cookie': '^9',
  '@fastify/passport': '^2',
  '@fastify/secure-session': '^7',
  '@fastify/session': '^10', // leaves the old session alive in `regenerate`
};
const fastify5 = Object.fromEntries(Object.keys(fastify4).map((name) => [name, devDependencies[name]]));
const hosts = [
  { nest: '10', type: 'commonjs', fastify: fastify4 },
  { nest: '11', type: 'commonjs', fastify: fastify5 },
  { nest: '12', type: 'module', fastify: fastify5 },
];
const others = ['@codegenie/serverless-express', '@fastify/aws-lambda', 'bson', 'cookie-session', 'express-session', 'express-ws', 'iron-session', 'keygrip', 'passport', 'reflect-metadata', 'rxjs', 'socket.io', 'socket.io-client', 'tough-cookie', 'ws']; // prettier-ignore
const RUN_TIMEOUT_MS = 900_000;

const chosenHosts = hosts.filter(({ nest }) => (values.nest ?? nest) === nest);
const chosenStorage = storages[values.storage];
if (chosenHosts.length === 0 || chosenStorage === undefined) {
  console.error(`--nest is one of ${hosts.map(({ nest }) => nest).join(', ')}; --storage is one of ${Object.keys(storages).join(', ')}`); // prettier-ignore
  process.exit(1);
}
const { client, server } = chosenStorage;
const clients = client === undefined ? [] : [client];

const runningServer = server?.();
await runningServer?.start();
const folder = mkdtempSync(join(tmpdir(), 'debate-space-matrix-'));
try {
  console.log(`storage: ${runningServer?.version ?? values.storage}`);
  const tarballs = packInto(folder).map(({ tarball }) => tarball);
  const columns = [];
  for (const host of chosenHosts) {
    const place = installHost(host, tarballs);
    transpile(place, host.type, 'scripts/test-matrix/run-cells.ts');
    const { cells, trouble } = await play(place);
    console.log(`NestJS ${host.nest}: ${cells.length} cells played`);
    columns.push({ nest: host.nest, versions: versionsIn(place, host), cells, trouble });
  }
  const { text, failed } = report(columns);
  console.log(`\n${text}`);
  if (failed > 0) process.exitCode = 1;
} finally {
  await runningServer?.kill();
  rmSync(folder, { recursive: true, force: true });
}

function installHost({ nest, type, fastify }, tarballs) {
  const place = join(folder, `nest-${nest}`);
  mkdirSync(place);
  const dependencies = Object.fromEntries([
    ...nestPackages.map((name) => [name, `^${nest}`]),
    ...[...others, ...clients].map((name) => [name, devDependencies[name]]),
    ...Object.entries(fastify),
  ]);
  const manifest = { name: 'host', private: true, type, dependencies };
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
  install(place, tarballs);
  return place;
}

/** A file and what it imports of ours. Types are checked in the workspace; a host of this kind loads this format. */
function transpile(place, type, file, done = new Set()) {
  if (done.has(file)) return;
  done.add(file);
  const compilerOptions = {
    module: type === 'module' ? ts.ModuleKind.ESNext : ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2023,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    esModuleInterop: true,
  };
  const { outputText } = ts.transpileModule(readFileSync(join(root, file), 'utf8'), { compilerOptions });
  const target = join(place, file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, outputText);
  for (const [, path] of outputText.matchAll(/(?:from |require\()["'](\..+)\.js["']/g))
    transpile(place, type, `${join(dirname(file), path)}.ts`, done);
}

/** Every result that came, and what brought the run down if something did. */
async function play(place) {
  const cells = [];
  const where = runningServer?.url ?? join(place, `${values.storage}-`);
  const child = fork(join(place, 'scripts/test-matrix/run-cells.js'), [values.storage, where], {
    cwd: place,
    execArgv: ['--disable-warning=ExperimentalWarning'], // Node 20 says it of the ESM packages that it requires
    timeout: RUN_TIMEOUT_MS,
  });
  child.on('message', (cell) => cells.push(cell));
  const [code, signal] = await once(child, 'close');
  const over = `the run was over after ${cells.length} cells (${signal ?? code})`;
  return { cells, trouble: code === 0 && cells.length > 0 ? undefined : over };
}

function versionsIn(place, { fastify }) {
  const names = [...packages, ...nestPackages, 'express', 'fastify', ...Object.keys(fastify), ...others, ...clients, 'jose']; // prettier-ignore
  const version = (name) =>
    JSON.parse(readFileSync(join(place, 'node_modules', name, 'package.json'), 'utf8')).version;
  return new Map([['node', process.versions.node], ...names.map((name) => [name, version(name)])]);
}
