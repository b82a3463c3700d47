import type { Rule, Tree, SchematicContext } from '@angular-devkit/schematics';
import { MetadataManager, ModuleImportDeclarator } from '@nestjs/schematics';
import { posix } from 'node:path';

/** What `nest add` passes. */
interface NestAddOptions {
  /** The folder of `app.module.ts`. Default: `src`. */
  readonly sourceRoot?: string | undefined;
}

/**
 * `nest add nestjs-debate-space`: the installation steps of docs/getting-started.md. Each step changes nothing where it is
 * already done, and returns what is left for the developer.
 *
 * @internal
 */
export function nestAdd({ sourceRoot = 'src' }: NestAddOptions): Rule {
  return (tree, context) => {
    const remaining = [
      ...requireConfigPackage(tree, context),
      ...importDebateSpaceModule(tree, `${sourceRoot}/app.module.ts`),
      ...addEnvExample(tree),
      ...transformEsmPackages(tree, [
        'package.json',
        'jest.config.json',
        'test/jest-e2e.json',
        `${sourceRoot}/../test/jest-e2e.json`,
      ]),
      'See a logout arrive: run npx debate-space-simulator, open http://127.0.0.1:4010, sign a user in there, start your app, log in as this user, and log out.',
      'If the session of your app has its user elsewhere than in user, userId, uid or passport, give the option session.uid: node_modules/nestjs-debate-space/docs/getting-started.md, "Which user?".',
    ];
    context.logger.info('DebateSpaceModule is added. What is left to do:');
    for (const [index, step] of remaining.entries()) context.logger.info(`${index + 1}. ${step}`);
  };
}

/** `imports` comes out of a variable, by `{ imports }` or `{ ...metadata }`: a property of ours would replace it. */
const HIDDEN_IMPORTS = /@Module\(\s*\{(?![^)]*\bimports['"]?\s*:)[^)]*(\.\.\.|\bimports\b)/;
const CONFIG_IMPORT = 'ConfigModule.forRoot(),\n    ';

/** With the type of the options, TypeScript finds a misspelled one. */
const DECLARED = 'DebateSpaceModule, type DebateSpaceModuleOptions';
/** No longer than the 80 characters of Prettier in `nest new`. */
const WRAPPED = `{
  DebateSpaceModule,
  type DebateSpaceModuleOptions,
}`;
/** The import of docs/getting-started.md. */
const DEBATE_SPACE_IMPORT = `DebateSpaceModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: (config: ConfigService): DebateSpaceModuleOptions => ({
        apiKey: config.getOrThrow<string>('DEBATE_SPACE_API_KEY'),
        secretKey: config.getOrThrow<string>('DEBATE_SPACE_SECRET_KEY'),
        applicationName: config.getOrThrow<string>(
          'DEBATE_SPACE_APPLICATION_NAME',
        ),
        authUrl: config.getOrThrow<string>('DEBATE_SPACE_AUTH_URL'),
      }),
    })`;

/** Imports DebateSpaceModule, and ConfigModule where the module has none. */
function importDebateSpaceModule(tree: Tree, file: string): string[] {
  const byHand = [
    `Import DebateSpaceModule in your root module, as docs/getting-started.md of nestjs-debate-space shows.`,
  ];
  if (!tree.exists(file)) return byHand;
  const content = tree.readText(file).replaceAll('\r\n', '\n');
  if (importsSymbol(content, 'DebateSpaceModule')) return [];
  if (HIDDEN_IMPORTS.test(content)) return byHand;
  const modules = `${importsSymbol(content, 'ConfigModule') ? '' : CONFIG_IMPORT}${DEBATE_SPACE_IMPORT}`;
  const edited = new MetadataManager(content).insert('imports', modules);
  if (edited === undefined || edited === content) return byHand;
  const multiline = edited.replace(`[${modules}]`, () => `[\n    ${modules},\n  ]`);
  const missing = ['ConfigModule', 'ConfigService'].filter((name) => !importsSymbol(content, name));
  const withConfig =
    missing.length > 0 ? declare(multiline, missing.join(', '), '@nestjs/config') : multiline;
  const declared = declare(withConfig, DECLARED, 'nestjs-debate-space');
  overwrite(tree, file, declared.replace(`{ ${DECLARED} }`, WRAPPED));
  return [];
}

/** In an import, up to the name of its package; a comment may name the symbol, too. */
function importsSymbol(content: string, symbol: string): boolean {
  return new RegExp(`^import\\s[^'"]*\\b${symbol}\\b`, 'm').test(content);
}

function declare(content: string, symbol: string, packageName: string): string {
  const imports = new ModuleImportDeclarator({ relative: () => packageName });
  type Options = Parameters<typeof imports.declare>[1];
  const nowhere = '' as Options['path'];
  return imports.declare(content, {
    symbol,
    name: packageName,
    metadata: 'imports',
    path: nowhere,
    module: nowhere,
  });
}

const NAME = '@nestjs/config';

interface Manifest {
  dependencies?: Record<string, string>;
}

/** Adds @nestjs/config to package.json, and installs it with the package manager of the lock file. */
function requireConfigPackage(tree: Tree, context: SchematicContext): string[] {
  const manifest = tree.readJson('package.json') as Manifest;
  const dependencies = manifest.dependencies ?? {};
  if (dependencies[NAME] !== undefined) return [];
  const [major] = /\d+/.exec(dependencies['@nestjs/common'] ?? '') ?? [];
  if (major === undefined) return [`Install ${NAME}.`];
  const range = Number(major) < 12 ? '^4.0.0' : '^12.0.0'; // 12 is ESM only, like NestJS 12
  const sorted = Object.entries({ ...dependencies, [NAME]: range }).toSorted(([a], [b]) => (a < b ? -1 : 1));
  manifest.dependencies = Object.fromEntries(sorted);
  overwriteJson(tree, 'package.json', manifest);
  // The task of @angular-devkit/schematics/tasks, which only its own dependents can import under pnpm.
  const options = {
    command: 'install',
    quiet: true,
    hideOutput: true,
    packageManager: packageManagerOf(tree),
  };
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options }) });
  return [];
}

function packageManagerOf(tree: Tree): string {
  if (tree.exists('pnpm-lock.yaml')) return 'pnpm';
  if (tree.exists('yarn.lock')) return 'yarn';
  return 'npm';
}

const FILE = '.env.example';

/** The values with which `npx debate-space-simulator` starts: they protect nothing. */
const DEMO_VALUES = {
  DEBATE_SPACE_API_KEY: 'demo-api-key',
  DEBATE_SPACE_SECRET_KEY: 'demo-secret-key-that-protects-nothing-at-all',
  DEBATE_SPACE_APPLICATION_NAME: 'demo',
  DEBATE_SPACE_AUTH_URL: 'http://127.0.0.1:4010',
};

/** Appends the variables that `.env.example` lacks. */
function addEnvExample(tree: Tree): string[] {
  const content = tree.exists(FILE) ? tree.readText(FILE) : '';
  const lines = Object.entries(DEMO_VALUES)
    .filter(([name]) => !new RegExp(`^${name}=`, 'm').test(content))
    .map(([name, value]) => `${name}=${value}\n`);
  if (lines.length > 0) {
    const separator = content === '' ? '' : `${content.trimEnd()}\n\n`;
    const text = `${separator}# The debate space. These are the demo values of: npx debate-space-simulator\n${lines.join('')}`;
    if (tree.exists(FILE)) overwrite(tree, FILE, text);
    else tree.create(FILE, text);
  }
  return [
    `Copy the DEBATE_SPACE_ variables of ${FILE} to .env. Tests that import your AppModule need them, too.`,
    'In production, take API key and secret key from the administration panel, Configuration > General.',
  ];
}

/** Jest in CommonJS mode transforms these packages, which are ESM only. `.pnpm` is the folder where pnpm keeps packages. */
export const ESM_PACKAGES = '/node_modules/(?!(.pnpm|nestjs-debate-space|debate-space-simulator|jose)/)';

interface JestConfig {
  transformIgnorePatterns?: string[];
}

/** Sets `transformIgnorePatterns` in the JSON files that configure jest. */
function transformEsmPackages(tree: Tree, files: readonly string[]): string[] {
  const line = JSON.stringify({ transformIgnorePatterns: [ESM_PACKAGES] }).slice(1, -1);
  const remaining = ['js', 'cjs', 'mjs', 'ts', 'cts']
    .map((extension) => `jest.config.${extension}`)
    .filter((file) => tree.exists(file));
  const existing = files.map((file) => posix.normalize(file)).filter((file) => tree.exists(file));
  for (const file of new Set(existing)) {
    const content = tree.readJson(file) as JestConfig & { jest?: JestConfig };
    const jest = file === 'package.json' ? content.jest : content;
    if (jest === undefined || jest.transformIgnorePatterns?.includes(ESM_PACKAGES)) continue;
    if (jest.transformIgnorePatterns !== undefined || !isPlainJson(tree.readText(file))) {
      remaining.push(file); // a comment would be lost
    } else if (file === 'package.json' || Object.keys(jest).length === 0) {
      jest.transformIgnorePatterns = [ESM_PACKAGES];
      overwriteJson(tree, file, content);
    } else {
      appendPatterns(tree, file);
    }
  }
  return remaining.map((file) => `Jest in ${file} has to transform the packages that are ESM only: ${line}`);
}

/** At the end of a JSON object, whose other lines stay as they are formatted. */
function appendPatterns(tree: Tree, file: string): void {
  const before = tree.readText(file).replaceAll('\r\n', '\n');
  const indent = indentationOf(before);
  const patterns = `,\n${indent}"transformIgnorePatterns": [\n${indent}${indent}"${ESM_PACKAGES}"\n${indent}]\n}`;
  overwrite(
    tree,
    file,
    before.replace(/,?\s*\}(?=\s*$)/, () => patterns),
  );
}

function isPlainJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function indentationOf(text: string): string {
  const [indentation = '  '] = /^[ \t]+/m.exec(text) ?? [];
  return indentation;
}

/** Overwrites a file, with the line ends that it has. */
function overwrite(tree: Tree, file: string, text: string): void {
  const lineEnd = tree.readText(file).includes('\r\n') ? '\r\n' : '\n';
  tree.overwrite(file, text.replaceAll(/\r?\n/g, lineEnd));
}

/** Overwrites a JSON file, with the indentation and the line ends that it has. */
function overwriteJson(tree: Tree, file: string, content: object): void {
  const before = tree.readText(file);
  overwrite(
    tree,
    file,
    `${JSON.stringify(content, null, indentationOf(before))}${before.endsWith('\n') ? '\n' : ''}`,
  );
}
