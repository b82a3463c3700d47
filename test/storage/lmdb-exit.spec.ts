import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../libs/debate-space-fixtures/src/${name}`, import.meta.url));
const LIMIT_MS = 2_000;
const AT_ONCE = 4;

interface End {
  readonly code: unknown;
  readonly signal: unknown;
  readonly isInTime: boolean;
}

/** A process of storage-exit.mjs, and how it ends. */
async function endOf(path: string, how: string, afterMs: number): Promise<End> {
  const args = ['--import', fixture('typescript.mjs'), fixture('storage-exit.mjs'), path, how, `${afterMs}`];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const exit = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exit]); // it says when it ends itself
  const begun = performance.now();
  const kill = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const [code, signal] = (await exit) as [unknown, unknown];
  clearTimeout(kill);
  return { code, signal, isInTime: performance.now() - begun < LIMIT_MS };
}

describe('a process whose lmdb storage is under full load', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'lmdb-exit-'));
  });
  afterAll(async () => {
    await rm(root, { recursive: true });
  });

  async function endsOf(how: string, count: number, isShared = false): Promise<readonly End[]> {
    const ends: End[] = [];
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let n = next++; n < count; n = next++) {
        const path = join(root, isShared ? how : `${how}-${n}`);
        ends.push(await endOf(path, how, 20 + ((n * 37) % 300)));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    return ends;
  }

  const EXITED = { code: 3, signal: null, isInTime: true };
  const FAILED = { code: 1, signal: null, isInTime: true };

  it('ends when the host calls process.exit()', async () => {
    expect(await endsOf('exit', 20)).toEqual(Array.from({ length: 20 }, () => EXITED));
  }, 60_000);

  it('ends when the host throws', async () => {
    expect(await endsOf('throw', 20)).toEqual(Array.from({ length: 20 }, () => FAILED));
  }, 60_000);

  it.each(['exit-open', 'exit-close'])(
    'ends while the storage opens or closes: %s',
    async (how) => {
      expect(await endsOf(how, 4)).toEqual(Array.from({ length: 4 }, () => EXITED));
    },
    60_000,
  );

  it('ends while other processes write to the same folder', async () => {
    expect(await endsOf('exit', 8, true)).toEqual(Array.from({ length: 8 }, () => EXITED));
  }, 60_000);
});
