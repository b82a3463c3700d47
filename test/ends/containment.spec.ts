import { beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ContainmentReport } from 'debate-space-fixtures/containment-host.js';
import { containmentStacks } from 'debate-space-fixtures/containment-stacks.js';
import { faultsOn } from 'debate-space-fixtures/host-faults.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Run {
  readonly code: unknown;
  readonly report: ContainmentReport;
}

async function play(stack: string): Promise<Run> {
  const hooks = ['--no-warnings', '--import', './libs/debate-space-fixtures/src/typescript.mjs'];
  const child = spawn(
    process.execPath,
    [...hooks, 'libs/debate-space-fixtures/src/containment-host.ts', stack],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [printed, closed] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code: closed[0] as unknown, report: JSON.parse(printed) as ContainmentReport };
}

// The same browser in the same host with the same fault, without the plugin and with it, in a process of its own.
const hosts = containmentStacks.map(({ name }, index) => ({ name, faults: faultsOn(index === 0) }));
describe.each(hosts)('a host on $name', ({ name, faults }) => {
  let run: Run;
  beforeAll(async () => {
    run = await play(name);
  }, 600_000);

  it.each(faults)('answers and lives as without the plugin when $name', ({ name }) => {
    const { without, withPlugin } = run.report.faults.find(({ fault }) => fault === name) ?? {};
    expect(without).toBeDefined();
    expect(withPlugin).toEqual(without);
  });

  it('answers and lives as without the plugin, whatever the plugin contains and breaks', () => {
    const { contained } = run.report;
    expect(contained.map(({ fault }) => fault)).not.toEqual([]);
    expect(
      contained.filter(({ without, withPlugin }) => JSON.stringify(without) !== JSON.stringify(withPlugin)),
    ).toEqual([]);
  });

  it('exits as without the plugin', () => {
    expect(run.code).toBe(0);
  });
});
