// Adopts the plugin in an app of `nest new`, as the README says, and leaves the app's other files as they are.
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestOf } from '../manifest.js';
import { root, type Packed } from '../packed.js';
import { logOutOnce } from './built-app.js';
import { examine } from './command-line.js';
import type { PackageManager } from './package-managers.js';
import { readmeFiles, writeSource } from './readme.js';
import { withSimulator } from './running-simulator.js';
import { changedFiles, copyScaffold, filesOf } from './scaffold.js';

const { peerDependencies = {} } = manifestOf(join(root, 'libs/debate-space'));
const telemetry = `@opentelemetry/api@${String(peerDependencies['@opentelemetry/api'])}`;
const packages = ['express-session', '@types/express-session', telemetry];

interface Adoption {
  /** The app's folder as `nest new` left it. */
  readonly scaffold: string;
  /** Where this adoption happens. */
  readonly place: string;
  readonly manager: PackageManager;
  /** Of Node.js: the built app runs on one after the other. */
  readonly binaries: readonly string[];
  /** The plugin and what it depends on, the simulator and the command line. */
  readonly packed: readonly Packed[];
}

export async function adopt({ scaffold, place, manager, binaries, packed }: Adoption): Promise<void> {
  copyScaffold(scaffold, place, packed);
  const tarballs = packed.map(({ tarball }) => `file:${tarball}`);
  await manager.add(place, [...tarballs, ...packages]);
  await nestAdd(place, manager);

  writeHost(place);
  cpSync(join(place, '.env.example'), join(place, '.env'));
  await manager.runScript(place, 'test');
  await manager.runScript(place, 'test:e2e');

  const bin = join(place, 'node_modules/.bin/debate-space-simulator');
  await withSimulator(bin, {}, async (authUrl) => {
    await examine(place, { DEBATE_SPACE_AUTH_URL: authUrl });
    rmSync(join(place, 'dist'), { recursive: true, force: true });
    await manager.exec(place, 'nest', ['build', '--builder', 'tsc']);
    const main = ['dist/main.js', 'dist/src/main.js'].find((path) => existsSync(join(place, path)));
    assert.ok(main, 'nest build has built no main.js');
    for (const node of binaries) await logOutOnce(node, place, main, authUrl);
  });
}

/** Twice: the second time, nothing changes. */
async function nestAdd(place: string, manager: PackageManager): Promise<void> {
  const scaffolded = filesOf(place);
  const ofJest = scaffolded.has('test/jest-e2e.json') ? ['test/jest-e2e.json'] : [];
  const add = (): Promise<string> =>
    manager.exec(place, 'nest', ['add', 'nestjs-debate-space', '--skip-install']);
  const printed = await add();
  assert.match(printed, /What is left to do/);
  const added = filesOf(place);
  assert.deepEqual(changedFiles(scaffolded, added), [
    '.env.example',
    'package.json',
    'src/app.module.ts',
    ...ofJest,
  ]);
  assert.match(added.get('package.json') ?? '', /"@nestjs\/config"/);
  await add();
  assert.deepEqual(changedFiles(added, filesOf(place)), []);
}

/** The app's own part – sessions, a login and a logout – and the README's files. */
function writeHost(place: string): void {
  const { type } = manifestOf(place);
  const tsconfig = readFileSync(join(place, 'tsconfig.json'), 'utf8');
  const format = { isEsm: type === 'module', hasInterop: tsconfig.includes('"esModuleInterop": true') };
  const own = (name: string): string => readFileSync(join(root, 'scripts/check-package', name), 'utf8');
  const files = new Map([
    ...readmeFiles(),
    ['src/session.module.ts', own('session.module.ts')],
    [
      'test/operations.e2e-spec.ts',
      own('operations.e2e-spec.ts').replace(/^import .*'@jest\/globals'.*\n/m, ''),
    ],
  ]);
  for (const [path, code] of files) writeSource(place, path, code, format);

  const module = join(place, 'src/app.module.ts');
  const withSessions = readFileSync(module, 'utf8').replace('imports: [', 'imports: [SessionModule, ');
  const importLine = `import { SessionModule } from './session.module${format.isEsm ? '.js' : ''}';\n`;
  writeFileSync(module, importLine + withSessions);
}
