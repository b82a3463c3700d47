// A host with all parts of the plugin and nothing but the packages that it needs. Our types compile under `strict` without
// skipLibCheck; every storage loads, and that of SQLite says which package it lacks; the host erases a user and reports one
// logout: from its files, and as one file by the commands and the configuration that docs/deploying.md shows. And the command line.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logOutOnce, newApp, withSimulator } from '../driver.js';
import { manifestOf } from '../manifest.js';
import { install, root, run, type Packed } from '../packed.js';

const PAGE = 'docs/deploying.md';
const BUNDLERS = ['esbuild', 'webpack'] as const;
const NEST = ['common', 'core', 'platform-express'];
const OTHERS = ['express-session', 'reflect-metadata', 'rxjs', '@opentelemetry/api'];
const { peerDependencies = {} } = manifestOf(join(root, 'libs/debate-space'));

/** @param tarballs of the plugin and what it depends on, and of the simulator */
export async function tryHost(folder: string, nest: string, tarballs: readonly string[]): Promise<void> {
  const type = nest === '12' ? 'module' : 'commonjs';
  const place = newApp(folder, `host-${nest}`, { type });
  const node = (...args: string[]): Promise<string> => run(process.execPath, args, place);
  const nestPackages = NEST.map((name) => `@nestjs/${name}@^${nest}`);
  const types = [`@types/express@${nest === '10' ? 4 : 5}`, '@types/express-session', '@types/node@20'];
  await install(place, [...tarballs, ...nestPackages, ...OTHERS, ...types]);
  writeHost(place);
  await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', place);
  await node('installed-parts.cjs');
  await withSimulator(place, {}, (authUrl) => logOutOnce(process.execPath, place, 'dist/main.js', authUrl));
  const bundlers = nest === '10' ? [] : ['esbuild', 'webpack@5', 'webpack-cli'];
  const optional = [`libsql@${String(peerDependencies.libsql)}`, `@nestjs/terminus@${nest}`];
  await install(place, [...optional, ...bundlers]);
  console.log(`  NestJS ${nest} (${type}): ${(await node('installed-parts.cjs', 'optional')).trim()}`);
  if (nest !== '10') await tryBundles(folder, nest, place);
}

/** One file starts in a folder with nothing else. Beside node_modules, it also starts with SQLite, which it leaves out. */
async function tryBundles(folder: string, nest: string, place: string): Promise<void> {
  const page = readFileSync(join(root, PAGE), 'utf8');
  cpSync(join(root, 'docs/examples/webpack.config.cjs'), join(place, 'webpack.config.cjs'));
  for (const bundler of BUNDLERS) {
    const [command] = new RegExp(`^npx ${bundler} .*`, 'm').exec(page) ?? [];
    assert.ok(command, `${PAGE} has no command with ${bundler}`);
    const [, name = '', ...args] = command.split(' ');
    await run(join(place, 'node_modules/.bin', name), args, place);
    const alone = join(folder, `bundle-${nest}-${bundler}`);
    mkdirSync(alone);
    cpSync(join(place, 'bundle/main.cjs'), join(alone, 'main.cjs'));
    await withSimulator(place, {}, async (authUrl) => {
      await logOutOnce(process.execPath, alone, 'main.cjs', authUrl);
      const sqlite = { SQLITE_FILE: 'data/debate-space.db' };
      await logOutOnce(process.execPath, place, 'bundle/main.cjs', authUrl, sqlite);
    });
  }
}

/** The sources of the host, and what its TypeScript wants. */
function writeHost(place: string): void {
  const own = (name: string, path: string): void => {
    cpSync(join(root, 'scripts/check-package', name), join(place, path));
  };
  own('whole-host.ts', 'src/main.ts');
  own('session.module.ts', 'src/session.module.ts');
  own('installed-parts.cjs', 'installed-parts.cjs');
  const options = { module: 'nodenext', target: 'es2022', strict: true, esModuleInterop: true };
  const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true };
  const compilerOptions = { ...options, ...decorators, types: ['node'], rootDir: 'src', outDir: 'dist' };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
}

/** In a folder without an app. @param packed the plugin and what it depends on, the simulator and the command line */
export async function tryCommandLine(folder: string, packed: readonly Packed[]): Promise<void> {
  const place = newApp(folder, 'operators');
  await install(
    place,
    packed.map(({ tarball }) => tarball),
  );
  const keys = {
    DEBATE_SPACE_API_KEY: 'api-key-of-a-check',
    DEBATE_SPACE_SECRET_KEY: 'a secret key of a check, long enough for HS256',
    DEBATE_SPACE_APPLICATION_NAME: 'check',
  };
  await withSimulator(place, keys, async (authUrl) => {
    const lines = Object.entries({ ...keys, DEBATE_SPACE_AUTH_URL: authUrl });
    writeFileSync(join(place, '.env'), lines.map(([name, value]) => `${name}="${value}"\n`).join(''));
    await examine(place);
  });
  for (const bin of ['debate-space', 'debate-space-simulator'])
    assert.match(await run('npx', ['--no-install', bin, '--version'], place), /^\d+\.\d+\.\d+\n$/);
}

/** Runs the doctor of the command line that is installed in `place`. */
export async function examine(place: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const bin = join(place, 'node_modules/.bin/debate-space');
  const printed = await run(bin, ['doctor', '--json'], place, { ...process.env, ...env });
  const results = JSON.parse(printed) as readonly { readonly check: string; readonly ok: boolean }[];
  const reached = results.some(({ check, ok }) => check === 'users' && ok);
  assert.ok(reached, `doctor did not reach the user list: ${printed}`);
}
