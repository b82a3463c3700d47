// A host with all of its packages as one file, by the command and the configuration that docs/deploying.md shows: it
// starts in a folder with nothing else. Beside node_modules, it also starts with SQLite, which the bundle leaves out.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, runAsync } from '../packed.js';
import { logOutOnce } from './built-app.js';
import { npm } from './package-managers.js';
import { withSimulator } from './running-simulator.js';

const PAGE = 'docs/deploying.md';
const BUNDLERS = ['esbuild', 'webpack'] as const;
const NEST = ['common', 'core', 'platform-express'];
const OTHERS = ['express-session', 'reflect-metadata', 'rxjs', '@opentelemetry/api', 'libsql'];
const TYPES = ['@types/express@5', '@types/express-session', '@types/node@20'];

/** @param tarballs of the plugin and what it depends on, and of the simulator */
export async function tryBundles(folder: string, nest: string, tarballs: readonly string[]): Promise<void> {
  const place = join(folder, `bundles-${nest}`);
  const type = nest === '12' ? 'module' : 'commonjs';
  mkdirSync(join(place, 'src'), { recursive: true });
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type }));
  const nestPackages = NEST.map((name) => `@nestjs/${name}@^${nest}`);
  await npm.add(place, [
    ...[...tarballs, ...nestPackages, ...OTHERS, ...TYPES],
    ...['esbuild', 'webpack@5', 'webpack-cli'],
  ]);
  writeHost(place);
  await runAsync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);

  const page = readFileSync(join(root, PAGE), 'utf8');
  cpSync(join(root, 'docs/examples/webpack.config.cjs'), join(place, 'webpack.config.cjs'));
  const bin = join(place, 'node_modules/.bin/debate-space-simulator');
  for (const bundler of BUNDLERS) {
    const [command] = new RegExp(`^npx ${bundler} .*`, 'm').exec(page) ?? [];
    assert.ok(command, `${PAGE} has no command with ${bundler}`);
    const [, name = '', ...args] = command.split(' ');
    await runAsync(join(place, 'node_modules/.bin', name), args, place);
    const alone = join(folder, `bundle-${nest}-${bundler}`);
    mkdirSync(alone);
    cpSync(join(place, 'bundle/main.cjs'), join(alone, 'main.cjs'));
    await withSimulator(bin, {}, async (authUrl) => {
      await logOutOnce(process.execPath, alone, 'main.cjs', authUrl);
      await logOutOnce(process.execPath, place, 'bundle/main.cjs', authUrl, {
        SQLITE_FILE: 'data/debate-space.db',
      });
    });
  }
  console.log(
    `✓ a NestJS ${nest} host (${type}) in one file by ${BUNDLERS.join(' and by ')} erases a user and reports one logout`,
  );
}

/** The sources of the host, and what its TypeScript wants. */
function writeHost(place: string): void {
  for (const [from, to] of [
    ['bundled-host.ts', 'main.ts'],
    ['session.module.ts', 'session.module.ts'],
  ] as const)
    cpSync(join(root, 'scripts/check-package', from), join(place, 'src', to));
  const options = { module: 'nodenext', target: 'es2022', strict: true, esModuleInterop: true };
  const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true };
  const compilerOptions = { ...options, ...decorators, types: ['node'], rootDir: 'src', outDir: 'dist' };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
}
