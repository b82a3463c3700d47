// durable-jobs alone, from its tarball, with lmdb and with ioredis: what it brings along, and that whatever it has accepted
// is worked although the process that adds and works it is killed again and again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { manifestOf } from '../manifest.js';
import { root, runAsync, tarballOf, type Packed } from '../packed.js';
import { RedisServer } from '../test-crash/redis.js';
import { npm } from './package-managers.js';

const KILLS = 12;
/** A process lives so long after it has added its first jobs, at most. */
const LIFE_MS = 700;
const FOREIGN = ['@nestjs', 'axios', 'jose', 'rxjs', 'undici', 'nestjs-debate-space'];
const PROGRAM = 'durable-jobs.mjs';

export async function tryDurableJobsAlone(folder: string, packed: readonly Packed[]): Promise<void> {
  const place = join(folder, 'durable-jobs-alone');
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  await npm.add(place, [tarballOf(packed, 'durable-jobs'), 'lmdb@^3.5.0', 'ioredis@^5']);
  const { dependencies } = manifestOf(join(place, 'node_modules/durable-jobs'));
  assert.deepEqual(Object.keys(dependencies ?? {}), ['sorted-btree']);
  assert.deepEqual(
    FOREIGN.filter((name) => existsSync(join(place, 'node_modules', name))),
    [],
  );
  cpSync(join(root, 'scripts/check-package', PROGRAM), join(place, PROGRAM));
  const redis = new RedisServer('always');
  await redis.start();
  try {
    await killAgainAndAgain(place, 'lmdb', join(place, 'jobs'));
    await killAgainAndAgain(place, 'redis', redis.url);
  } finally {
    await redis.kill();
  }
}

async function killAgainAndAgain(place: string, engine: string, jobs: string): Promise<void> {
  const ledger = join(place, `${engine}.txt`);
  writeFileSync(ledger, '');
  const args = [PROGRAM, engine, jobs, ledger];
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const before = readFileSync(ledger).length;
    const child = spawn(process.execPath, args, { cwd: place, stdio: ['ignore', 'inherit', 'inherit'] });
    const exit = once(child, 'exit');
    while (readFileSync(ledger).length === before && child.exitCode === null) await pause(5);
    assert.equal(child.exitCode, null, `durable-jobs with ${engine} does not start`);
    await pause(Math.random() * LIFE_MS);
    child.kill('SIGKILL');
    await exit;
  }
  await runAsync(process.execPath, [...args, 'drain'], place);
  console.log(`✓ ${compare(readFileSync(ledger, 'utf8'), engine)}`);
}

/** @returns what was proven, in a sentence */
function compare(ledger: string, engine: string): string {
  const lines = ledger.split('\n').map((line) => line.split(' '));
  const of = (what: string): string[][] => lines.filter(([word]) => word === what);
  const added = new Map(of('added').map(([, id = '', n]) => [id, Number(n)]));
  const [done, parked] = ['done', 'parked'].map((what) => new Set(of(what).map(([, id]) => id)));
  const tries = new Map<string, number>();
  for (const [, id = ''] of of('tried')) tries.set(id, (tries.get(id) ?? 0) + 1);
  const wrong = [...added].flatMap(([id, n]) => {
    if (n % 5 === 0) return parked?.has(id) && !done?.has(id) ? [] : [`job ${n} is not parked`];
    if (!done?.has(id) || parked?.has(id)) return [`job ${n} was lost`];
    return n % 4 === 0 && (tries.get(id) ?? 0) < 2 ? [`job ${n} was not tried again`] : [];
  });
  const faults = lines.filter(([what]) => what?.startsWith('fault:')).map((line) => line.join(' '));
  assert.deepEqual([...wrong, ...faults], [], `durable-jobs with ${engine}`);
  assert.ok(added.size > KILLS, `${added.size} jobs are too few`);
  const twice = of('done').length - (done?.size ?? 0);
  return `durable-jobs alone with ${engine}, killed ${KILLS} times: ${added.size} accepted, none lost, ${parked?.size} parked, ${twice} worked twice`;
}
