import { beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { configuredFor, run } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';
import type { CheckResult } from './check.js';

const scene = scenario();
let folder: string;
let path: string;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  // The doctor takes problem and hint from the error: the word in a path misleads nobody.
  folder = await mkdtemp(join(tmpdir(), 'doctor; hint: storage-'));
  scene.afterwards(() => rm(folder, { recursive: true }));
  path = join(folder, 'debate-space.db');
  env = configuredFor(scene.service, await sqliteFile(path));
});

async function checked(name: string): Promise<CheckResult | undefined> {
  const results = JSON.parse((await run('doctor --json', { env })).out) as CheckResult[];
  return results.find(({ check }) => check === name);
}

describe('doctor', () => {
  it('names the variables to compare, the page of the causes and the commands for parked logouts', async () => {
    scene.service.faults.add({ kind: 'status', status: 403, operation: 'logout', times: 1 });
    await run('logout alice --execute-here', { env });
    expect(await checked('parked')).toEqual({
      check: 'parked',
      ok: false,
      detail: '1 logout parked (403)',
      hint: 'the service refuses the logout token; check DEBATE_SPACE_SECRET_KEY, DEBATE_SPACE_SECRET_KEY_ENCODING, logout.algorithm, issuer and audience. docs/troubleshooting.md has the causes under "Causes of a parked logout". See them with: debate-space outbox parked; then: debate-space outbox retry --all',
    });
  });

  it('shows the whole problem of a storage that does not open, its hint, and the page for it', async () => {
    await run('logout alice --no-wait', { env });
    const file = `${path}.key`;
    await rm(file);
    expect(await checked('storage')).toEqual({
      check: 'storage',
      ok: false,
      detail: `${file} is missing or damaged, and what was encrypted with it cannot be read`,
      hint: expect.stringMatching(
        /^restore it from a backup.* DEBATE_SPACE_STORAGE_KEY, .* there\. docs\/troubleshooting\.md .*"Storage"\.$/,
      ),
    });
  });

  it('says what to give in place of a file that is not there', async () => {
    const elsewhere = join(folder, 'elsewhere.db');
    env = { ...env, DEBATE_SPACE_STORAGE: `sqlite:${elsewhere}` };
    expect(await checked('storage')).toMatchObject({
      detail: `DEBATE_SPACE_STORAGE: there is no storage in ${elsewhere}`,
      hint: expect.stringContaining("give the path of your app's SQLite storage"),
    });
  });
});
