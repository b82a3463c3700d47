// An app of `nest new` adopts the plugin as the README says: `nest add`, the snippets of the pages, its tests, its build.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { NodeWorkflow } from '@angular-devkit/schematics/tools/index.js';
import { lastValueFrom } from 'rxjs';
import { logOutOnce, newApp, withSimulator } from '../driver.js';
import { manifestOf } from '../manifest.js';
import { nodeBinary } from '../node-binaries.js';
import { install, NPM_ADD, root, run, tarballOf, type Packed } from '../packed.js';
import { examine } from './hosts.js';

const { peerDependencies = {} } = manifestOf(join(root, 'libs/debate-space'));
/** Yarn refuses to install where the registry lacks a package for another platform: what the workspace takes instead. */
const { overrides } = manifestOf(root);
const telemetry = `@opentelemetry/api@${String(peerDependencies['@opentelemetry/api'])}`;
const ADDED = ['express-session', '@types/express-session', telemetry];
const ADD = {
  npm: NPM_ADD,
  pnpm: ['add', '--reporter=append-only'],
  yarn: ['add', '--silent', '--non-interactive'],
} as const;
type Manager = keyof typeof ADD;
export const managers = Object.keys(ADD) as Manager[];

/** The folder with the schematics of `nest new`, and with the package managers that are not on every machine. */
export type Scaffolds = () => Promise<string>;

/** Installed when the first app needs them. */
export function scaffolds(folder: string): Scaffolds {
  let installed: Promise<string> | undefined;
  const installAll = async (): Promise<string> => {
    const place = newApp(folder, 'nest-new');
    const schematics = ['10', '11', '12'].map((nest) => `nest-${nest}@npm:@nestjs/schematics@${nest}`);
    await install(place, [...schematics, 'pnpm@10', 'yarn@1']);
    return place;
  };
  return () => (installed ??= installAll());
}

interface Adoption {
  readonly scaffolded: Scaffolds;
  readonly nest: string;
  /** Versions of Node.js: the built app runs on one after the other. */
  readonly nodes: readonly string[];
  readonly manager: Manager;
  /** The plugin and what it depends on, the simulator and the command line. */
  readonly packed: readonly Packed[];
}

export async function adopt(
  folder: string,
  { scaffolded, nest, nodes, manager, packed }: Adoption,
): Promise<void> {
  const tools = await scaffolded();
  const name = `nest-${nest}-${manager}`;
  const place = join(folder, name);
  // What the Nest CLI runs for `nest new`; NestJS 12 is strict by default.
  const options = { name, packageManager: 'npm', language: 'ts', strict: nest === '12', spec: true };
  const workflow = new NodeWorkflow(folder, { resolvePaths: [tools] });
  await lastValueFrom(workflow.execute({ collection: `nest-${nest}`, schematic: 'application', options }));
  // pnpm and Yarn take our tarballs also where one of our packages depends on another.
  const own = { 'nestjs-debate-space': `file:${tarballOf(packed, 'nestjs-debate-space')}` };
  const manifest = { ...manifestOf(place), resolutions: { ...overrides, ...own } };
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest, null, 2));

  // As on a developer's machine: `nest add` finds the package managers, and in CI pnpm refuses to change its lock file.
  const PATH = [join(tools, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  const env = { ...process.env, CI: undefined, PATH };
  const manage = (...args: string[]): Promise<string> => run(manager, args, place, env);
  const nestCli = (...args: string[]): Promise<string> =>
    run(join(place, 'node_modules/.bin/nest'), args, place, env);
  await manage(...ADD[manager], ...packed.map(({ tarball }) => `file:${tarball}`), ...ADDED);
  await nestAdd(place, nestCli);
  writeHost(place);
  cpSync(join(place, '.env.example'), join(place, '.env'));
  await manage('run', 'test');
  await manage('run', 'test:e2e');
  await withSimulator(place, {}, async (authUrl) => {
    await examine(place, { DEBATE_SPACE_AUTH_URL: authUrl });
    rmSync(join(place, 'dist'), { recursive: true, force: true });
    await nestCli('build', '--builder', 'tsc');
    const main = ['dist/main.js', 'dist/src/main.js'].find((path) => existsSync(join(place, path)));
    assert.ok(main, 'nest build has built no main.js');
    for (const node of nodes) await logOutOnce(await nodeBinary(node), place, main, authUrl);
  });
}

/** Twice: the second time, nothing changes. */
async function nestAdd(place: string, nestCli: (...args: string[]) => Promise<string>): Promise<void> {
  const scaffolded = filesOf(place);
  const ofJest = scaffolded.has('test/jest-e2e.json') ? ['test/jest-e2e.json'] : [];
  const add = (): Promise<string> => nestCli('add', 'nestjs-debate-space', '--skip-install');
  assert.match(await add(), /What is left to do/);
  const added = filesOf(place);
  const changed = ['.env.example', 'package.json', 'src/app.module.ts', ...ofJest];
  assert.deepEqual(changedFiles(scaffolded, added), changed);
  assert.match(added.get('package.json') ?? '', /"@nestjs\/config"/);
  await add();
  assert.deepEqual(changedFiles(added, filesOf(place)), []);
}

type Files = ReadonlyMap<string, string>;

/** Every file of an app that a developer edits, by its path. */
function filesOf(place: string): Files {
  const entries = readdirSync(place, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(place, join(entry.parentPath, entry.name)));
  const edited = paths.filter(
    (path) => !/^(node_modules|dist)\/|\b(package-lock|pnpm-lock|yarn)\.\w+$/.test(path),
  );
  return new Map(edited.map((path) => [path, readFileSync(join(place, path), 'utf8')]));
}

/** The paths of files that one of two states lacks, or that differ. */
function changedFiles(before: Files, after: Files): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path)).toSorted();
}

/**
 * The app's own part – sessions, a login and a logout – and the snippets of the pages, as an app of its format has them:
 * CommonJS leaves `.js` out of relative imports, and without `esModuleInterop` there are no default imports from it.
 */
function writeHost(place: string): void {
  const isEsm = manifestOf(place).type === 'module';
  const hasInterop = readFileSync(join(place, 'tsconfig.json'), 'utf8').includes('"esModuleInterop": true');
  const own = (name: string): string => readFileSync(join(root, 'scripts/check-package', name), 'utf8');
  const files = snippets()
    .set('src/session.module.ts', own('session.module.ts'))
    // The test runner of the app gives what the workspace imports.
    .set(
      'test/operations.e2e-spec.ts',
      own('operations.e2e-spec.ts').replace(/^import .*'@jest\/globals'.*\n/m, ''),
    );
  for (const [path, code] of files) {
    const withPaths = isEsm ? code : code.replaceAll(/(?<=from '\.[^']*)\.js(?=')/g, '');
    const withImports = hasInterop
      ? withPaths
      : withPaths.replaceAll(/^import (\w+) from '([^']+)';$/gm, "import $1 = require('$2');");
    mkdirSync(dirname(join(place, path)), { recursive: true });
    writeFileSync(join(place, path), withImports);
  }
  const module = join(place, 'src/app.module.ts');
  const withSessions = readFileSync(module, 'utf8').replace('imports: [', 'imports: [SessionModule, ');
  const importLine = `import { SessionModule } from './session.module${isEsm ? '.js' : ''}';\n`;
  writeFileSync(module, importLine + withSessions);
}

/** The snippets of the README and of the pages for beginners whose first line names a file. */
function snippets(): Map<string, string> {
  const pages = ['README', 'docs/getting-started', 'docs/erasure-for-engineers', 'docs/testing-your-app'];
  const text = pages.map((page) => readFileSync(join(root, `${page}.md`), 'utf8')).join('\n');
  const fences = text.matchAll(/^```ts\n\/\/ (\S+\.ts)\n(.*?)^```/gms);
  const files = new Map([...fences].map(([, path = '', code = '']) => [path, code]));
  // The app has a main.ts of its own; `nest add` edits its module.
  for (const own of ['src/main.ts', 'src/main-fastify.ts', 'src/app.module.ts'])
    if (!files.delete(own)) throw new Error(`no page shows ${own}`);
  for (const path of ['src/debate-erasure.controller.ts', 'test/debate-space.e2e-spec.ts'])
    if (!files.has(path)) throw new Error(`no page shows ${path}`);
  return files;
}
