import type { Rule, SchematicContext, Tree } from '@angular-devkit/schematics';
import { posix } from 'node:path';

/** What `nest add` passes. */
interface NestAddOptions {
  /** The folder of `app.module.ts`. Default: `src`. */
  readonly sourceRoot?: string | undefined;
}

/**
 * `nest add nestjs-debate-space`: the installation steps of docs/getting-started.md, for an app as `nest new` makes it. Each
 * step changes nothing where it is already done, and returns what is left for the developer.
 *
 * @internal
 */
export function nestAdd({ sourceRoot = 'src' }: NestAddOptions): Rule {
  return (tree, context) => {
    const remaining = [
      ...requireConfigPackage(tree, context),
      ...importDebateSpaceModule(tree, `${sourceRoot}/app.module.ts`),
      ...addEnvExample(tree),
      ...transformEsmPackages(tree, ['package.json', posix.join(sourceRoot, '../test/jest-e2e.json')]),
      'See a logout arrive: run npx debate-space-simulator, open http://127.0.0.1:4010, sign a user in there, start your app, log in as this user, and log out.',
      'If the session of your app has its user elsewhere than in user, userId, uid or passport, give the option session.uid: node_modules/nestjs-debate-space/docs/getting-started.md, "Which user?".',
    ];
    context.logger.info('DebateSpaceModule is added. What is left to do:');
    for (const [index, step] of remaining.entries()) context.logger.info(`${index + 1}. ${step}`);
  };
}

/** As `nest new` writes it. Anything else is left to the developer: `imports` may come out of a variable. */
const IMPORTS = /@Module\(\{\s*imports: \[\s*/;
/**
 * The import of docs/getting-started.md, no wider than the 80 characters of Prettier in `nest new`. With the type of the
 * options, TypeScript finds a misspelled one.
 */
const DEBATE_SPACE_MODULE = `    DebateSpaceModule.forRootAsync({
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
    }),
`;
const DEBATE_SPACE_IMPORT = `import {
  DebateSpaceModule,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
`;

/** Imports DebateSpaceModule, and ConfigModule where the module has none. */
function importDebateSpaceModule(tree: Tree, file: string): string[] {
  const content = tree.exists(file) ? tree.readText(file).replaceAll('\r\n', '\n') : '';
  /** In an import, up to the name of its package; a comment may name the symbol, too. */
  const imports = (symbol: string) => new RegExp(`^import\\s[^'"]*\\b${symbol}\\b`, 'm').test(content);
  if (imports('DebateSpaceModule')) return [];
  if (!IMPORTS.test(content)) {
    return [
      'Import DebateSpaceModule in your root module, as docs/getting-started.md of nestjs-debate-space shows.',
    ];
  }
  const config = ['ConfigModule', 'ConfigService'].filter((symbol) => !imports(symbol)).join(', ');
  const configImport = config === '' ? '' : `import { ${config} } from '@nestjs/config';\n`;
  const modules = `${imports('ConfigModule') ? '' : '    ConfigModule.forRoot(),\n'}${DEBATE_SPACE_MODULE}`;
  const edited = content
    .replace(/^import\b/m, (first) => `${configImport}${DEBATE_SPACE_IMPORT}${first}`)
    .replace(IMPORTS, (start) => `${start.trimEnd()}\n${modules}    `)
    .replace(`${modules}    ]`, () => `${modules}  ]`);
  overwrite(tree, file, edited);
  return [];
}

const CONFIG_PACKAGE = '@nestjs/config';

interface Manifest {
  dependencies?: Record<string, string>;
}

/** Adds @nestjs/config to package.json, and installs it with the package manager of the lock file. */
function requireConfigPackage(tree: Tree, context: SchematicContext): string[] {
  const manifest = tree.readJson('package.json') as Manifest;
  const dependencies = manifest.dependencies ?? {};
  if (dependencies[CONFIG_PACKAGE] !== undefined) return [];
  const [major] = /\d+/.exec(dependencies['@nestjs/common'] ?? '') ?? [];
  if (major === undefined) return [`Install ${CONFIG_PACKAGE}.`];
  const range = Number(major) < 12 ? '^4.0.0' : '^12.0.0'; // 12 is ESM only, like NestJS 12
  const added = Object.entries({ ...dependencies, [CONFIG_PACKAGE]: range });
  manifest.dependencies = Object.fromEntries(added.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  overwriteJson(tree, 'package.json', manifest);
  const lockFiles = { 'pnpm-lock.yaml': 'pnpm', 'yarn.lock': 'yarn' };
  const [, packageManager = 'npm'] = Object.entries(lockFiles).find(([file]) => tree.exists(file)) ?? [];
  // The task of @angular-devkit/schematics/tasks, which only its own dependents can import under pnpm.
  const options = { command: 'install', quiet: true, hideOutput: true, packageManager };
  context.addTask({ toConfiguration: () => ({ name: 'node-package', options }) });
  return [];
}

const ENV_EXAMPLE = '.env.example';

/** The values with which `npx debate-space-simulator` starts: they protect nothing. */
const DEMO_VALUES = {
  DEBATE_SPACE_API_KEY: 'demo-api-key',
  DEBATE_SPACE_SECRET_KEY: 'demo-secret-key-that-protects-nothing-at-all',
  DEBATE_SPACE_APPLICATION_NAME: 'demo',
  DEBATE_SPACE_AUTH_URL: 'http://127.0.0.1:4010',
};

/** Appends the variables that `.env.example` lacks. */
function addEnvExample(tree: Tree): string[] {
  if (!tree.exists(ENV_EXAMPLE)) tree.create(ENV_EXAMPLE, '');
  const content = tree.readText(ENV_EXAMPLE);
  const lines = Object.entries(DEMO_VALUES)
    .filter(([name]) => !new RegExp(`^${name}=`, 'm').test(content))
    .map(([name, value]) => `${name}=${value}\n`);
  if (lines.length > 0) {
    const separator = content === '' ? '' : `${content.trimEnd()}\n\n`;
    const title = '# The debate space. These are the demo values of: npx debate-space-simulator\n';
    overwrite(tree, ENV_EXAMPLE, `${separator}${title}${lines.join('')}`);
  }
  return [
    `Copy the DEBATE_SPACE_ variables of ${ENV_EXAMPLE} to .env. Tests that import your AppModule need them, too.`,
    'In production, take API key and secret key from the administration panel, Configuration > General.',
  ];
}

/** Jest in CommonJS mode transforms these packages, which are ESM only. `.pnpm` is the folder where pnpm keeps packages. */
export const ESM_PACKAGES = '/node_modules/(?!(.pnpm|nestjs-debate-space|debate-space-simulator|jose)/)';

interface JestConfig {
  transformIgnorePatterns?: string[];
}

/** Sets `transformIgnorePatterns` in the files where `nest new` configures jest; other files are left to the developer. */
function transformEsmPackages(tree: Tree, files: readonly string[]): string[] {
  const remaining = ['js', 'cjs', 'mjs', 'ts', 'cts', 'json']
    .map((extension) => `jest.config.${extension}`)
    .filter((file) => tree.exists(file));
  for (const file of files.filter((each) => tree.exists(each))) {
    const content = parsed(tree.readText(file)) as (JestConfig & { jest?: JestConfig }) | undefined;
    const jest = file === 'package.json' ? content?.jest : (content ?? {});
    if (jest === undefined || jest.transformIgnorePatterns?.includes(ESM_PACKAGES)) continue;
    if (content === undefined || jest.transformIgnorePatterns !== undefined) {
      remaining.push(file);
      continue;
    }
    jest.transformIgnorePatterns = [ESM_PACKAGES];
    overwriteJson(tree, file, content);
  }
  const line = JSON.stringify({ transformIgnorePatterns: [ESM_PACKAGES] }).slice(1, -1);
  return remaining.map((file) => `Jest in ${file} has to transform the packages that are ESM only: ${line}`);
}

/** `undefined` for JSON with comments, which an edit would lose. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Overwrites a file, with the line ends that it has. */
function overwrite(tree: Tree, file: string, text: string): void {
  const lineEnd = tree.readText(file).includes('\r\n') ? '\r\n' : '\n';
  tree.overwrite(file, text.replaceAll(/\r?\n/g, lineEnd));
}

/** Overwrites a JSON file, with the indentation and the line ends that it has. */
function overwriteJson(tree: Tree, file: string, content: object): void {
  const before = tree.readText(file);
  const [indentation = '  '] = /^[ \t]+/m.exec(before) ?? [];
  const end = before.endsWith('\n') ? '\n' : '';
  overwrite(tree, file, `${JSON.stringify(content, null, indentation)}${end}`);
}
