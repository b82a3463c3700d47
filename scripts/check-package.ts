// Packs the libraries and the command line, and uses the tarballs as strangers would: in apps of `nest new` 10, 11 and 12.
// One app of each with npm, and one with pnpm. `--nest 11` and `--manager yarn` run the apps of this NestJS and this package
// manager only, and nothing else; `--hosts` runs the hosts with every part of the plugin, and nothing else.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from './caught.js';
import { adopt } from './check-package/adoption.js';
import { tryCommandLine } from './check-package/command-line.js';
import { tryHost } from './check-package/hosts.js';
import { checkContents } from './check-package/package-contents.js';
import { npm, otherPackageManagers, type PackageManager } from './check-package/package-managers.js';
import { scaffold } from './check-package/scaffold.js';
import { nodeBinary } from './node-binaries.js';
import { packages, packInto, runAsync, type Packed } from './packed.js';

const { values } = parseArgs({
  options: {
    nest: { type: 'string' },
    manager: { type: 'string' },
    hosts: { type: 'boolean' },
  },
});
/** One for each CPU of the smallest machine that runs this. */
const CONCURRENCY = 2;
const nests = ['10', '11', '12'] as const;
type Nest = (typeof nests)[number];

interface Adoption {
  readonly nest: Nest;
  readonly manager: PackageManager;
}

/** The versions of Node.js that the built apps of each NestJS run on. */
const NODES: Readonly<Record<Nest, readonly string[]>> = { 10: ['20'], 11: ['22'], 12: ['24', '26'] };
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'nestjs-debate-space': [
    ...['dist/index.js', 'dist/index.d.ts', 'dist/sqlite-worker.js', 'schematics/collection.json'],
    // Messages name these pages.
    ...['getting-started', 'erasure-recipes', 'options', 'deploying', 'troubleshooting'].map(
      (page) => `docs/${page}.md`,
    ),
  ],
  'debate-space-simulator': ['dist/index.js', 'dist/index.d.ts'],
  'debate-space': ['bin/debate-space.js', 'dist/cli.js'],
};

const folder = mkdtempSync(join(tmpdir(), 'debate-space-package-'));
try {
  const packed = packInto(folder, [...packages, 'debate-space']);
  for (const each of packed) await checkContents(each, NEEDED[each.name] ?? []);
  const tarballs = packed.slice(0, packages.length).map(({ tarball }) => tarball);
  const hosts = nests.map((nest) => () => tryHost(folder, nest, tarballs));
  if (values.hosts) await inTurns(hosts);
  else await tryAll(packed, hosts);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function tryAll(packed: readonly Packed[], hosts: readonly (() => Promise<void>)[]): Promise<void> {
  const tarballs = packed.map(({ tarball }) => tarball);
  const managers = { npm, ...(await otherPackageManagers(folder)) };

  const chosen = adoptions(managers);
  const scaffolds = new Map<Nest, string>();
  for (const { nest } of chosen) {
    if (!scaffolds.has(nest)) scaffolds.set(nest, await scaffold(folder, nest));
  }
  const others = [
    ...hosts,
    async () => {
      await tryCommandLine(folder, tarballs);
      const bin = join(folder, 'command-line/node_modules/.bin/debate-space-simulator');
      console.log(
        `✓ debate-space-simulator ${(await runAsync(bin, ['--version'])).trim()} runs from the shell`,
      );
    },
  ];
  const isPart = values.nest !== undefined || values.manager !== undefined;
  const apps = chosen.map((adoption) => () => tryAdoption(adoption, scaffolds, packed));
  await inTurns(isPart ? apps : [...apps, ...others]);
}

function adoptions(managers: Readonly<Record<'npm' | 'pnpm' | 'yarn', PackageManager>>): Adoption[] {
  const all = nests.flatMap((nest) => Object.values(managers).map((manager) => ({ nest, manager })));
  if (values.nest !== undefined || values.manager !== undefined) {
    return all.filter(
      ({ nest, manager }) =>
        nest === (values.nest ?? nest) && manager.name === (values.manager ?? manager.name),
    );
  }
  // pnpm's folders and a tsconfig without esModuleInterop are what jest in CommonJS mode stumbles over.
  return all.filter(({ nest, manager }) => manager === npm || (manager === managers.pnpm && nest === '10'));
}

async function tryAdoption(
  { nest, manager }: Adoption,
  scaffolds: ReadonlyMap<Nest, string>,
  packed: readonly Packed[],
): Promise<void> {
  const startedAt = Date.now();
  const nodes = NODES[nest];
  const binaries = nodes.map((major) => nodeBinary(major, folder));
  const place = join(folder, `nest-${nest}-${manager.name}`);
  const name = `an app of nest new ${nest} with ${manager.name}`;
  try {
    await adopt({ scaffold: scaffolds.get(nest) ?? '', place, manager, binaries, packed });
  } catch (error) {
    throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
  }
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  console.log(
    `✓ ${name} adopts the plugin by nest add: unit and e2e tests pass, ` +
      `the command line runs, and the built app reports one logout on Node.js ${nodes.join(', ')} (${seconds} s)`,
  );
}

/** Runs tasks, `CONCURRENCY` at a time. A task that fails leaves the others as they are. */
async function inTurns(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...tasks];
  const failures: string[] = [];
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      try {
        await task();
      } catch (error) {
        failures.push(messageOf(error));
        process.exitCode = 1;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  for (const failure of failures) console.error(`✗ ${failure}`);
}
