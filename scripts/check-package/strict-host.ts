// A host with nothing but what it needs: our types compile under `strict` without skipLibCheck, in CommonJS and in ESM,
// and every storage loads; that of SQLite says which package it lacks.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../manifest.js';
import { root, runAsync } from '../packed.js';
import { npm } from './package-managers.js';

const express: Readonly<Record<string, string>> = { 10: '4', 11: '5', 12: '5' };
const { peerDependencies = {} } = manifestOf(join(root, 'libs/debate-space'));

/** @param tarballs of the plugin and what it depends on, and of the simulator */
export async function tryStrictHost(
  folder: string,
  nest: string,
  tarballs: readonly string[],
): Promise<void> {
  const place = join(folder, `strict-${nest}`);
  const type = nest === '12' ? 'module' : 'commonjs';
  const node = (...args: string[]): Promise<string> => runAsync(process.execPath, args, place);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type }));
  const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^${nest}`);
  const types = [`@types/express@${String(express[nest])}`, '@types/express-session', '@types/node@20'];
  await npm.add(place, [
    ...tarballs,
    ...nestPackages,
    'express-session',
    'reflect-metadata',
    'rxjs',
    ...types,
  ]);

  cpSync(join(root, 'scripts/check-package/host.ts'), join(place, 'host.ts'));
  const options = { module: 'nodenext', target: 'es2022', strict: true, experimentalDecorators: true };
  const compilerOptions = { ...options, emitDecoratorMetadata: true, esModuleInterop: true, types: ['node'] };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['host.ts'] }));
  await node(join(root, 'node_modules/typescript/bin/tsc'), '-p', place);
  await node('host.js');
  const version = (await node('-p', "require('@nestjs/core/package.json').version")).trim();
  console.log(`✓ a strict NestJS ${version} host (${type}) compiles, lists users and reports one logout`);

  cpSync(join(root, 'scripts/check-package/storages.cjs'), join(place, 'storages.cjs'));
  await node('storages.cjs');
  await npm.add(place, [`libsql@${String(peerDependencies.libsql)}`]);
  await node('storages.cjs', 'installed');
  await npm.add(place, [`@nestjs/terminus@${nest}`]);
  cpSync(join(root, 'scripts/check-package/health.cjs'), join(place, 'health.cjs'));
  console.log(`✓ in the NestJS ${version} host, ${(await node('health.cjs')).trim()}`);
  cpSync(join(root, 'scripts/check-package/undici.cjs'), join(place, 'undici.cjs'));
  const undici = (await node('undici.cjs')).trim();
  console.log(
    `✓ in the NestJS ${version} host, every storage loads by import and require, and opens where it needs no server; ${undici}`,
  );
}
