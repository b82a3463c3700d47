import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { StartReport } from './start-process.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const hooks = ['module/missing-packages', 'support/process/typescript'].flatMap((path) => [
  '--import',
  `./test/${path}.mjs`,
]);

/** A host in a process of its own that starts although these packages cannot be loaded, and logs a user out. */
async function startWithout(...packages: readonly string[]): Promise<StartReport> {
  const env = { ...process.env, MISSING_PACKAGES: packages.join() };
  const options = ['--no-warnings', ...hooks, 'test/module/start-process.ts'];
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: root, env });
  return JSON.parse(stdout) as StartReport;
}

describe('a host', () => {
  it('keeps the dispatcher of Node.js’s own fetch when the plugin has loaded undici', async () => {
    const report = await startWithout();
    expect(new Set(report.causes)).toEqual(new Set(['ECONNREFUSED']));
    expect(report.fetchIsReplaced).toBe(false);
  });

  it('starts when no package that signs or sends can be loaded, and the logout waits', async () => {
    const report = await startWithout('axios', 'jose', 'undici', 'libsql', '@opentelemetry');
    expect(new Set(report.causes)).toEqual(new Set(['jose cannot be loaded']));
    expect(report.warnings).toEqual([expect.stringContaining('contained: start')]);
    expect(report.status).toBe(404);
  });

  it('starts when undici cannot be loaded, and the logout names the cause and waits', async () => {
    const report = await startWithout('undici');
    expect(new Set(report.causes)).toEqual(new Set(['ERR_MODULE_NOT_FOUND']));
    expect(report.status).toBe(404);
  });
});
