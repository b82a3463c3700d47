// A host with all parts of the plugin and nothing but the packages that it needs. Our types compile under `strict` without
// skipLibCheck; every storage loads, and that of SQLite says which package it lacks; the host erases a user and reports one
// logout: from its files, and as one file by the commands and the configuration that docs/deploying.md shows.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../manifest.js';
import { root, runAsync } from '../packed.js';
import { logOutOnce } from './built-app.js';
import { npm } from './package-managers.js';
import { withSimulator } from './running-simulator.js';

const PAGE = 'docs/deploying.md';
const BUNDLERS = ['esbuild', 'webpack'] as const;
const NEST = ['common', 'core', 'platform-express'];
const OTHERS = ['express-session', 'reflect-metadata', 'rxjs', '@opentelemetry/api'];
const { peerDependencies = {} } = manifestOf(join(root, 'libs/debate-space'));

/** @param tarballs of the plugin and what it depends on, and of the simulator */
export async function tryHost(folder: string, nest: string, tarballs: readonly string[]): Promise<void> {
  const place = join(folder, `host-${nest}`);
  const type = nest === '12' ? 'module' : 'commonjs';
  const node = (...args: string[]): Promise<string> => runAsync(process.execPath, args, place);
  const script = (name: string, ...args: string[]): Promise<string> => {
    cpSync(join(root, 'scripts/check-package', name), join(place, name));
    return node(name, ...args);
  };
  mkdirSync(join(place, 'src'), { recursive: true });
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type }));
  const nestPackages = NEST.map((name) => `@nestjs/${name}@^${nest}`);
  const types = [`@types/express@${nest === '10' ? 4 : 5}`, '@types/express-session', '@types/node@20'];
  await npm.add(place, [...tarballs, ...nestPackages, ...OTHERS, ...types]);
  writeHost(place);
  await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', place);
  await script('storages.cjs');
  await npm.add(place, [`libsql@${String(peerDependencies.libsql)}`]);
  await script('storages.cjs', 'installed');
  const undici = (await script('undici.cjs')).trim();
  const bin = join(place, 'node_modules/.bin/debate-space-simulator');
  await withSimulator(bin, {}, (authUrl) => logOutOnce(process.execPath, place, 'dist/main.js', authUrl));
  console.log(
    `✓ a strict NestJS ${nest} host (${type}) compiles, loads every storage, erases a user and reports one logout; ${undici}`,
  );
  if (nest !== '10') await tryBundles(folder, nest, place, bin);
  await npm.add(place, [`@nestjs/terminus@${nest}`]);
  console.log(`✓ in the NestJS ${nest} host, ${(await script('health.cjs')).trim()}`);
}

/** One file starts in a folder with nothing else. Beside node_modules, it also starts with SQLite, which it leaves out. */
async function tryBundles(folder: string, nest: string, place: string, bin: string): Promise<void> {
  await npm.add(place, ['esbuild', 'webpack@5', 'webpack-cli']);
  const page = readFileSync(join(root, PAGE), 'utf8');
  cpSync(join(root, 'docs/examples/webpack.config.cjs'), join(place, 'webpack.config.cjs'));
  for (const bundler of BUNDLERS) {
    const [command] = new RegExp(`^npx ${bundler} .*`, 'm').exec(page) ?? [];
    assert.ok(command, `${PAGE} has no command with ${bundler}`);
    const [, name = '', ...args] = command.split(' ');
    await runAsync(join(place, 'node_modules/.bin', name), args, place);
    const alone = join(folder, `bundle-${nest}-${bundler}`);
    mkdirSync(alone);
    cpSync(join(place, 'bundle/main.cjs'), join(alone, 'main.cjs'));
    const sqlite = { SQLITE_FILE: 'data/debate-space.db' };
    await withSimulator(bin, {}, async (authUrl) => {
      await logOutOnce(process.execPath, alone, 'main.cjs', authUrl);
      await logOutOnce(process.execPath, place, 'bundle/main.cjs', authUrl, sqlite);
    });
  }
  console.log(`✓ so does the NestJS ${nest} host in one file by ${BUNDLERS.join(' and by ')}`);
}

/** The sources of the host, and what its TypeScript wants. */
function writeHost(place: string): void {
  cpSync(join(root, 'scripts/check-package/whole-host.ts'), join(place, 'src/main.ts'));
  cpSync(join(root, 'scripts/check-package/session.module.ts'), join(place, 'src/session.module.ts'));
  const options = { module: 'nodenext', target: 'es2022', strict: true, esModuleInterop: true };
  const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true };
  const compilerOptions = { ...options, ...decorators, types: ['node'], rootDir: 'src', outDir: 'dist' };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
}
