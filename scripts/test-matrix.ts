// Plays every row of the table of endings (endings/stacks.ts of test/support) on every stack under NestJS 10, 11 and 12 and
// Node.js 20, 22, 24 and 26: in hosts that have the packed tarballs and the versions of the session libraries that belong
// to that NestJS. By default each NestJS runs on one Node.js.
// Options: `--storage` memory (default), sqlite, postgres or mysql; `--nest` 10, 11 or 12 and `--node` 20, 22, 24 or 26 for
// these alone; `--full` for each NestJS on each Node.js.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startMariadb } from '#support/servers/mariadb.js';
import { startPostgres } from '#support/servers/postgres.js';
import { manifestOf } from './manifest.js';
import { hosts, installHost, nestPackages, others, transpile, type Host } from './nest-hosts.js';
import { NODE_MAJORS, nodeBinary, RUNNING_MAJOR } from './node-binaries.js';
import { packages, packInto, run } from './packed.js';
import type { Cell } from './test-matrix/run-cells.js';

const { values } = parseArgs({
  options: {
    storage: { type: 'string', default: 'memory' },
    nest: { type: 'string' },
    node: { type: 'string' },
    full: { type: 'boolean' },
  },
});
interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

interface StorageKind {
  /** The package of its client. */
  readonly client?: string;
  readonly start?: () => Promise<Server>;
}
const storages: Readonly<Record<string, StorageKind>> = {
  memory: {},
  sqlite: { client: 'libsql' }, // Node.js 20 has no SQLite of its own
  postgres: {
    client: 'pg',
    start: () => startPostgres().then((server) => ({ ...server, url: server.connectionString })),
  },
  mysql: {
    client: 'mysql2',
    start: () => startMariadb().then((server) => ({ ...server, url: server.uri })),
  },
};
const RUN_TIMEOUT_MS = 900_000;

const chosenHosts = hosts.filter(({ nest }) => (values.nest ?? nest) === nest);
const chosenStorage = storages[values.storage];
const isNode = values.node === undefined || NODE_MAJORS.includes(values.node);
if (chosenHosts.length === 0 || chosenStorage === undefined || !isNode) {
  console.error(`--nest is one of ${hosts.map(({ nest }) => nest).join(', ')}`);
  console.error(`--node is one of ${NODE_MAJORS.join(', ')}`);
  console.error(`--storage is one of ${Object.keys(storages).join(', ')}`);
  process.exit(1);
}
const { client, start } = chosenStorage;
const clients = client === undefined ? [] : [client];

const server = await start?.();
const folder = mkdtempSync(join(tmpdir(), 'debate-space-matrix-'));
try {
  console.log(`storage: ${values.storage}`);
  const tarballs = packInto(folder).map(({ tarball }) => tarball);
  for (const host of chosenHosts) {
    const place = installHost(host, folder, tarballs, clients);
    transpile(place, host.type, 'scripts/test-matrix/run-cells.ts');
    for (const node of nodesOf(host)) {
      const binary = nodeBinary(node, folder);
      const { cells, trouble } = await play(place, binary, host.nest);
      const wrong = cells.filter((cell) => cell.wrong.length > 0);
      const versions = [run(binary, ['--version']).trim(), ...versionsIn(place, host)].join(', ');
      console.log(
        `NestJS ${host.nest}: ${cells.length} rows, ${cells.length - wrong.length} as promised; Node.js ${versions}`,
      );
      for (const cell of wrong) console.log([`${cell.stack}: ${cell.name}`, ...cell.wrong].join('\n    '));
      if (trouble !== undefined) console.log(trouble);
      if (wrong.length > 0 || trouble !== undefined) process.exitCode = 1;
    }
  }
} finally {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** One that is chosen alone runs on the Node.js that runs this, unless another is chosen as well. */
function nodesOf({ nodes }: Host): readonly string[] {
  if (values.full) return NODE_MAJORS;
  if (values.node !== undefined) return [values.node];
  return values.nest === undefined ? nodes : [RUNNING_MAJOR];
}

/** Every result that came, and what brought the run down if something did. */
async function play(
  place: string,
  execPath: string,
  nest: string,
): Promise<{ readonly cells: readonly Cell[]; readonly trouble: string | undefined }> {
  const cells: Cell[] = [];
  const where = server?.url ?? mkdtempSync(join(place, 'storage-'));
  const child = fork(join(place, 'scripts/test-matrix/run-cells.js'), [values.storage, where, nest], {
    cwd: place,
    execPath,
    execArgv: ['--disable-warning=ExperimentalWarning'], // Node 20 says it of the ESM packages that it requires
    timeout: RUN_TIMEOUT_MS,
  });
  child.on('message', (cell) => cells.push(cell as Cell));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  const over = `the run was over after ${cells.length} cells (${signal ?? String(code)})`;
  return { cells, trouble: code === 0 && cells.length > 0 ? undefined : over };
}

function versionsIn(place: string, { fastify }: Host): string[] {
  const names = [
    ...packages,
    ...nestPackages,
    'express',
    'fastify',
    ...Object.keys(fastify),
    ...others,
    ...clients,
    'jose',
  ];
  return names.map((name) => `${name} ${manifestOf(join(place, 'node_modules', name)).version}`);
}
