// A host with nothing but what it needs: our types compile under `strict` without skipLibCheck, in CommonJS and in ESM,
// and the durable engines say which packages they lack.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, runAsync } from '../packed.mjs';
import { npm } from './package-managers.mjs';

const express = { 10: '4', 11: '5', 12: '5' };
const { peerDependencies } = JSON.parse(readFileSync(join(root, 'libs/debate-space/package.json'), 'utf8'));
const ENGINE_PACKAGES = ['lmdb', 'bullmq', 'ioredis'].map((name) => `${name}@${peerDependencies[name]}`);

/** @param tarballs of the plugin and the simulator */
export async function tryStrictHost(folder, nest, tarballs) {
  const place = join(folder, `strict-${nest}`);
  const type = nest === '12' ? 'module' : 'commonjs';
  const node = (...args) => runAsync(process.execPath, args, place);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type }));
  const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^${nest}`);
  const types = [`@types/express@${express[nest]}`, '@types/express-session', '@types/node@20'];
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

  cpSync(join(root, 'scripts/check-package/engines.cjs'), join(place, 'engines.cjs'));
  await node('engines.cjs');
  await npm.add(place, ENGINE_PACKAGES);
  await node('engines.cjs', 'installed');
  cpSync(join(root, 'scripts/check-package/undici.cjs'), join(place, 'undici.cjs'));
  const undici = (await node('undici.cjs')).trim();
  console.log(
    `✓ in the NestJS ${version} host, lmdbOutbox and bullmqOutbox say what they lack, and load when they have it; ${undici}`,
  );
}
