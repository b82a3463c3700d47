/** @jest-environment ./test/support/process/native-require.environment.js */
import { describe, expect, it } from '@jest/globals';
import type { SchematicContext, Tree } from '@angular-devkit/schematics';
import type * as Schematics from '@angular-devkit/schematics';
import { DEMO_CREDENTIALS } from 'debate-space-simulator';
import { readFileSync } from 'node:fs';
import { nestAdd } from './nest-add.js';

declare const nativeRequire: NodeJS.Require;
const { HostTree } = nativeRequire('@angular-devkit/schematics') as typeof Schematics;

const pageOf = (name: string): string =>
  readFileSync(new URL(`../../../../docs/${name}`, import.meta.url), 'utf8');
const scaffoldModule = `import { Module } from '@nestjs/common';
import { AppController } from './app.controller';

@Module({
  imports: [],
  controllers: [AppController],
})
export class AppModule {}
`;

function project(files: Record<string, string | object> = {}): Tree {
  const tree = new HostTree();
  const manifest = {
    dependencies: { '@nestjs/common': '^12.0.1', rxjs: '^7.8.1' },
    jest: { rootDir: 'src' },
  };
  const all = { 'package.json': manifest, 'src/app.module.ts': scaffoldModule, ...files };
  for (const [path, content] of Object.entries(all)) {
    tree.create(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return tree;
}

/** Runs `nest add` once. */
async function add(tree: Tree, options = {}): Promise<{ printed: string; installedWith: unknown[] }> {
  const lines: string[] = [];
  const installedWith: unknown[] = [];
  const context = {
    logger: { info: (line: string) => lines.push(line) },
    addTask: (task: { toConfiguration(): { options: { packageManager: string } } }) =>
      installedWith.push(task.toConfiguration().options.packageManager),
  };
  await nestAdd(options)(tree, context as unknown as SchematicContext);
  return { printed: lines.join('\n'), installedWith };
}

function contents(tree: Tree): Record<string, string> {
  const files: Record<string, string> = {};
  tree.visit((path) => (files[path] = tree.readText(path)));
  return files;
}

describe('nest add nestjs-debate-space', () => {
  it('imports the module as docs/getting-started.md shows', async () => {
    const tree = project();
    await add(tree);
    const fence =
      /^```ts\n\/\/ src\/app\.module\.ts\n(.*?)^```/ms.exec(pageOf('getting-started.md'))?.[1] ?? '';
    const [, imports] = /( {2}imports: \[\n.*?^ {2}\],\n)/ms.exec(fence) ?? [];
    expect(imports).toContain('DebateSpaceModule');
    const unwrapped = (text: string): string =>
      text.replaceAll(/\s+/g, ' ').replaceAll(/([({]) |,? (?=[)}])/g, '$1');
    const edited = tree.readText('src/app.module.ts');
    expect(edited.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(unwrapped(edited)).toBe(
      unwrapped(`import { ConfigModule, ConfigService } from '@nestjs/config';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Module } from '@nestjs/common';
import { AppController } from './app.controller';

@Module({
${imports}  controllers: [AppController],
})
export class AppModule {}
`),
    );
  });

  it('keeps the modules and the ConfigModule that the app imports already', async () => {
    const tree = project({
      'apps/shop/src/app.module.ts': `import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { UsersModule } from './users.module';

// DebateSpaceModule comes here later, with its ConfigService
@Module({ imports: [ConfigModule.forRoot({ isGlobal: true }), UsersModule] })
export class AppModule {}
`,
    });
    await add(tree, { sourceRoot: 'apps/shop/src' });
    const edited = tree.readText('apps/shop/src/app.module.ts');
    expect(edited).toContain('imports: [\n    DebateSpaceModule.');
    expect(edited).toContain('}),\n    ConfigModule.forRoot({ isGlobal: true }), UsersModule]');
    expect(edited.match(/ConfigModule\.forRoot\(/g)).toHaveLength(1);
    expect(edited.match(/import \{ Config\w+/g)?.toSorted()).toEqual([
      'import { ConfigModule',
      'import { ConfigService',
    ]);
    expect(tree.readText('src/app.module.ts')).toBe(scaffoldModule);
  });

  it('adds the demo keys of the simulator to .env.example, and keeps what is there', async () => {
    const tree = project({ '.env.example': 'PORT=3000\nDEBATE_SPACE_APPLICATION_NAME=shop' });
    await add(tree);
    const lines = tree.readText('.env.example').split('\n');
    expect(lines.slice(0, 2)).toEqual(['PORT=3000', 'DEBATE_SPACE_APPLICATION_NAME=shop']);
    expect(lines).toContain(`DEBATE_SPACE_API_KEY=${DEMO_CREDENTIALS.apiKey}`);
    expect(lines).toContain(`DEBATE_SPACE_SECRET_KEY=${DEMO_CREDENTIALS.secretKey}`);
    expect(lines).not.toContain(`DEBATE_SPACE_APPLICATION_NAME=${DEMO_CREDENTIALS.applicationName}`);
  });

  it('writes the jest line of docs/testing-your-app.md into both files that configure jest', async () => {
    const tree = project({ 'test/jest-e2e.json': { rootDir: '.' } });
    await add(tree);
    const [line] = /"transformIgnorePatterns": \[".*"\]/.exec(pageOf('testing-your-app.md')) ?? [];
    const { transformIgnorePatterns } = JSON.parse(`{${line}}`) as { transformIgnorePatterns: string[] };
    expect(tree.readJson('package.json')).toMatchObject({
      jest: { rootDir: 'src', transformIgnorePatterns },
    });
    expect(tree.readJson('test/jest-e2e.json')).toEqual({ rootDir: '.', transformIgnorePatterns });
  });

  it('keeps the indentation of JSON files', async () => {
    const manifest = { dependencies: { '@nestjs/common': '^12.0.1' }, jest: { rootDir: 'src' } };
    const text = `${JSON.stringify(manifest, null, '\t')}\n`;
    const tree = project({ 'package.json': text, 'test/jest-e2e.json': '{\n    "rootDir": "."\n}' });
    await add(tree);
    expect(tree.readText('package.json')).toMatch(/^\{\n\t"dependencies": \{\n\t\t"@nestjs\/common"/);
    expect(tree.readText('package.json')).not.toContain('\n ');
    expect(tree.readText('test/jest-e2e.json')).toMatch(/^\{\n {4}"rootDir": "\.",\n {4}"transform.*\}$/s);
  });

  it('keeps the line ends of Windows', async () => {
    const onWindows = (text: string): string => text.replaceAll('\n', '\r\n');
    const manifest = { dependencies: { '@nestjs/common': '^12.0.1' }, jest: { rootDir: 'src' } };
    const files = {
      'src/app.module.ts': onWindows(scaffoldModule),
      'package.json': onWindows(JSON.stringify(manifest, null, 2)),
      '.env.example': 'PORT=3000\r\n',
    };
    const tree = project(files);
    const unix = project({
      'package.json': JSON.stringify(manifest, null, 2),
      '.env.example': 'PORT=3000\n',
    });
    for (const each of [tree, unix]) await add(each);
    for (const file of Object.keys(files)) expect(tree.readText(file)).toBe(onWindows(unix.readText(file)));
  });

  it.each([
    ['^10.0.0', '^4.0.0'],
    ['^11.0.1', '^4.0.0'],
    ['^12.0.1', '^12.0.0'],
  ])('adds the @nestjs/config that belongs to NestJS %s', async (nest, range) => {
    const tree = project({ 'package.json': { dependencies: { '@nestjs/common': nest, rxjs: '^7.8.1' } } });
    await add(tree);
    expect(tree.readJson('package.json')).toEqual({
      dependencies: { '@nestjs/common': nest, '@nestjs/config': range, rxjs: '^7.8.1' },
    });
  });

  it.each([
    ['package-lock.json', 'npm'],
    ['pnpm-lock.yaml', 'pnpm'],
    ['yarn.lock', 'yarn'],
  ])('installs with the package manager that wrote %s', async (lockFile, packageManager) => {
    expect((await add(project({ [lockFile]: '{}' }))).installedWith).toEqual([packageManager]);
  });

  it('changes nothing the second time', async () => {
    const tree = project({ 'test/jest-e2e.json': {}, '.env.example': 'PORT=3000\n' });
    await add(tree);
    const before = contents(tree);
    expect((await add(tree)).installedWith).toEqual([]);
    expect(contents(tree)).toEqual(before);
  });

  it.each([
    ['imports: modules', JSON.stringify({ transformIgnorePatterns: ['/node_modules/(?!(nanoid)/)'] })],
    ['...metadata', '{\n  "rootDir": "." // a comment, which an edit would lose\n}\n'],
    ['imports', '{ "rootDir": "." /* here */ }'],
  ])('names each step that it cannot do: { %s }', async (moduleImports, jestConfig) => {
    const files = {
      'package.json': { dependencies: { '@nestjs/common': 'catalog:' } },
      'src/app.module.ts': scaffoldModule.replace('imports: []', moduleImports),
      'jest.config.json': '{}',
      'jest.config.ts': 'export default {};',
      'test/jest-e2e.json': jestConfig,
    };
    const tree = project(files);
    const { printed, installedWith } = await add(tree);
    expect(printed).toContain('Install @nestjs/config.');
    expect(printed).toContain('Import DebateSpaceModule in your root module');
    for (const file of ['jest.config.json', 'jest.config.ts', 'test/jest-e2e.json'])
      expect(printed.match(new RegExp(`Jest in ${file}`, 'g'))).toHaveLength(1);
    expect(printed).toMatch(/Copy the DEBATE_SPACE_ variables of \.env\.example to \.env\./);
    expect(installedWith).toEqual([]);
    expect(tree.readText('src/app.module.ts')).toBe(files['src/app.module.ts']);
    expect(tree.readText('test/jest-e2e.json')).toBe(jestConfig);
  });
});
