// Packs the libraries and the command line, and uses the tarballs as strangers would: in real apps of each NestJS version.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { packCommandLine, tryCommandLine } from './check-package/command-line.mjs';
import { install, packInto, root, run } from './packed.mjs';

const hosts = [
  { nest: '10', type: 'commonjs', express: '4' },
  { nest: '11', type: 'commonjs', express: '5' },
  { nest: '12', type: 'module', express: '5' },
];
const { peerDependencies } = JSON.parse(readFileSync(join(root, 'libs/debate-space/package.json'), 'utf8'));
const ENGINE_PACKAGES = ['lmdb', 'bullmq', 'ioredis'].map((name) => `${name}@${peerDependencies[name]}`);
const NOT_FOR_USERS = /\.spec\.|\/src\/|tsconfig|\.env/;

const folder = mkdtempSync(join(tmpdir(), 'debate-space-package-'));
try {
  const tarballs = await pack();
  for (const host of hosts) {
    bootIn(host, tarballs);
    tryEnginesIn(host);
  }
  testIn(join(folder, 'nest-10'), '10', ['jest@29', 'ts-jest@29', 'typescript@5']);
  testIn(join(folder, 'nest-11'), '11', ['jest@30', 'ts-jest@29', 'typescript@5']);
  const shell = run(join(folder, 'nest-12/node_modules/.bin/debate-space-simulator'), ['--version'], folder);
  console.log(`✓ debate-space-simulator ${shell.trim()} runs from the shell`);
  const commandLine = packCommandLine(folder);
  await checkContents(commandLine, ['bin/debate-space.js', 'dist/cli.js']);
  await tryCommandLine(folder, [...tarballs, commandLine.tarball]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function pack() {
  const packed = packInto(folder);
  for (const each of packed) await checkContents(each, ['dist/index.js', 'dist/index.d.ts']);
  return packed.map(({ tarball }) => tarball);
}

async function checkContents({ name, files, version, size }, needed) {
  const paths = files.map(({ path }) => path);
  for (const wanted of ['README.md', 'LICENSE', 'CHANGELOG.md', ...needed]) {
    if (!paths.includes(wanted)) throw new Error(`${name}: the package has no ${wanted}`);
  }
  const stray = paths.filter((path) => NOT_FOR_USERS.test(path));
  if (stray.length > 0) throw new Error(`${name}: the package has ${stray.join(', ')}`);
  await lint(name);
  console.log(
    `✓ ${name}@${version}: ${paths.length} files, ${Math.round(size / 1024)} KiB, publint has nothing to say`,
  );
}

async function lint(name) {
  const pkgDir = join(root, 'node_modules', name);
  const { messages, pkg } = await publint({ pkgDir, strict: true });
  if (messages.length === 0) return;
  throw new Error(`publint, ${name}:\n${messages.map((message) => formatMessage(message, pkg)).join('\n')}`);
}

function bootIn({ nest, type, express }, tarballs) {
  const place = join(folder, `nest-${nest}`);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type }));
  const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^${nest}`);
  const others = [
    'express-session',
    'reflect-metadata',
    'rxjs',
    `@types/express@${express}`,
    '@types/express-session',
  ];
  install(place, [...tarballs, ...nestPackages, ...others, '@types/node@20']);
  cpSync(join(root, 'scripts/check-package/host.ts'), join(place, 'host.ts'));
  const options = { module: 'nodenext', target: 'es2022', strict: true, experimentalDecorators: true };
  const compilerOptions = { ...options, emitDecoratorMetadata: true, esModuleInterop: true, types: ['node'] };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['host.ts'] }));
  run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);
  run(process.execPath, ['host.js'], place);
  const { version } = JSON.parse(
    run(process.execPath, ['-p', "JSON.stringify(require('@nestjs/core/package.json'))"], place),
  );
  console.log(`✓ a NestJS ${version} app (${type}) compiles, boots, lists users and tells of one logout`);
}

/** Without the packages that the engines need, and with them. */
function tryEnginesIn({ nest }) {
  const place = join(folder, `nest-${nest}`);
  cpSync(join(root, 'scripts/check-package/engines.cjs'), join(place, 'engines.cjs'));
  run(process.execPath, ['engines.cjs'], place);
  install(place, ENGINE_PACKAGES);
  run(process.execPath, ['engines.cjs', 'installed'], place);
  console.log(`✓ there, lmdbOutbox and bullmqOutbox say what they lack, and load when they have it`);
}

/** Runs a host's own jest in CommonJS mode, with the line that the README gives for it. */
function testIn(place, nest, tools) {
  const line = /transformIgnorePatterns: \['(.+)'\]/.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1];
  const jest = {
    rootDir: 'src',
    moduleFileExtensions: ['js', 'json', 'ts'],
    transform: {
      '^.+\\.(t|j)s$': [
        'ts-jest',
        { tsconfig: { module: 'commonjs', target: 'es2022', isolatedModules: true } },
      ],
    },
    transformIgnorePatterns: [line],
  };
  writeFileSync(join(place, 'jest.config.json'), JSON.stringify(jest));
  cpSync(join(root, 'scripts/check-package/host.spec.ts'), join(place, 'src/host.spec.ts'));
  install(place, [...tools, `@nestjs/testing@^${nest}`]);
  run(process.execPath, ['node_modules/jest/bin/jest.js', '-c', 'jest.config.json'], place);
  console.log(`✓ a NestJS ${nest} app’s own ${tools[0]} runs in CommonJS mode with the README’s line`);
}
