// nestjs-session-end alone, from its tarball, in a fresh app of NestJS 12 on Express and on Fastify: what it brings along, and
// what one import of its module reports.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../manifest.js';
import { root, runAsync, type Packed } from '../packed.js';
import { npm } from './package-managers.js';

const FOREIGN = [
  'axios',
  'jose',
  'lmdb',
  'undici',
  'valibot',
  'nestjs-debate-space',
  'durable-jobs',
  'debate-space-simulator',
];
const HOST = ['@nestjs/common@^12', '@nestjs/core@^12', '@nestjs/platform-express@^12'];
const FASTIFY = ['@nestjs/platform-fastify@^12', '@fastify/cookie', '@fastify/session'];

export async function trySessionEndAlone(folder: string, packed: readonly Packed[]): Promise<void> {
  const place = join(folder, 'session-end-alone');
  const tarball = packed.find(({ name }) => name === 'nestjs-session-end')?.tarball ?? '';
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type: 'module' }));
  await npm.add(place, [tarball, ...HOST, ...FASTIFY, 'express-session', 'reflect-metadata', 'rxjs']);
  const { dependencies } = manifestOf(join(place, 'node_modules/nestjs-session-end'));
  assert.deepEqual(Object.keys(dependencies ?? {}), ['cookie', 'lru-cache']);
  assert.deepEqual(
    FOREIGN.filter((name) => existsSync(join(place, 'node_modules', name))),
    [],
  );
  cpSync(join(root, 'scripts/check-package/session-end.mjs'), join(place, 'session-end.mjs'));
  for (const platform of ['express', 'fastify'])
    console.log(`✓ ${(await runAsync(process.execPath, ['session-end.mjs', platform], place)).trim()}`);
}
