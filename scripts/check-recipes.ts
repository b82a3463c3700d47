// Runs the recipes whose libraries are not in this workspace, with the packed tarballs, and with the very snippets that the
// documentation shows. Their types are only in the folder of the host: `npm run typecheck` leaves the recipes to this.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresServer, startPostgres } from '#support/servers/postgres.js';
import ts from 'typescript';
import { manifestOf } from './manifest.js';
import { install, packInto, root, run } from './packed.js';

const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^12`);
/** The newest and the oldest that `docs/stateless-logins.md` names. */
const BETTER_AUTH = ['^1', '1.4.8'];
/** Those that `docs/storage-connections.md` names; MikroORM 7 needs Node.js 22. */
const connections = [
  ...['pg@^8', 'mysql2@^3', 'typeorm@^1.1', 'knex@^3.3', 'drizzle-orm@^0.45'],
  ...['prisma', '@prisma/client', '@prisma/adapter-pg', '@prisma/adapter-mariadb'].map(
    (name) => `${name}@7.10.0`,
  ),
  ...['core', 'postgresql', 'mysql'].map((name) => `@mikro-orm/${name}@6.6.16`),
];
const others = ['reflect-metadata', 'rxjs', '@types/node@20', '@types/pg'];

const place = mkdtempSync(join(tmpdir(), 'debate-space-recipes-'));
try {
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type: 'module' }));
  const tarballs = packInto(place).map(({ tarball }) => tarball);
  install(place, [...tarballs, ...nestPackages, ...connections, ...others]);
  cpSync(join(root, 'scripts/check-recipes'), place, { recursive: true });
  const { compilerOptions: own } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) =>
    readFileSync(path, 'utf8'),
  ).config as { readonly compilerOptions: object };
  const compilerOptions = { ...own, paths: {}, rootDir: '.', outDir: 'dist' };
  write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['better-auth.ts', 'connections.ts'] }));

  write('auth.ts', snippet('docs/stateless-logins.md', 'better-auth'));
  write('existing-accounts.ts', snippet('docs/erasure-recipes.md', 'typeorm'));
  writeConnections();
  for (const wanted of BETTER_AUTH) {
    install(place, [`better-auth@${wanted}`]);
    run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);
    const told = run(process.execPath, ['dist/better-auth.js'], place);
    const { version } = manifestOf(join(place, 'node_modules/better-auth'));
    console.log(`✓ a host with better-auth ${version}, and the documentation’s snippet:\n${told.trimEnd()}`);
  }
  await checkConnections();
} finally {
  rmSync(place, { recursive: true, force: true });
}

function write(name: string, text: string): void {
  writeFileSync(join(place, name), text);
}

/** The recipes for Postgres, and what the page says about MySQL. */
function writeConnections(): void {
  const of = (module: string): string => snippet('docs/storage-connections.md', module);
  const forMysql = (code: string): string =>
    code
      .replaceAll('postgresStorage', 'mysqlStorage')
      .replaceAll(/(?<=debate-space\/)postgres|(?<=mikro-orm\/)postgresql/g, 'mysql');
  const modules = { typeorm: 'typeorm', knex: 'knex', 'mikro-orm': '@mikro-orm/postgresql' };
  for (const [name, module] of Object.entries(modules)) {
    write(`${name}.ts`, of(module));
    write(`${name}-mysql.ts`, forMysql(of(module)));
  }
  write('drizzle.ts', of('drizzle-orm'));
  const prisma = of('./generated/prisma/client.js');
  write('prisma.ts', prisma);
  const storage = forMysql(prisma.slice(prisma.indexOf('export const storageOf')));
  const imports = `import { mysqlStorage } from 'nestjs-debate-space/mysql';\n`;
  write('prisma-mysql.ts', imports + of('./generated/prisma-mysql/client.js') + storage);

  const clients = { prisma: 'postgresql', 'prisma-mysql': 'mysql' };
  for (const [folder, provider] of Object.entries(clients)) {
    const settings = {
      provider: 'prisma-client',
      output: `./generated/${folder}`,
      importFileExtension: 'js',
    };
    const lines = Object.entries(settings).map(([key, value]) => `${key} = "${value}"\n`);
    write(
      `${folder}.prisma`,
      `generator client {\n${lines.join('')}}\ndatasource db {\nprovider = "${provider}"\n}\n`,
    );
    process.env.PRISMA_SCHEMA_ENGINE_BINARY = process.execPath; // nothing is migrated: spares a download
    run('npx', ['prisma', 'generate', '--schema', `${folder}.prisma`], place);
  }
}

async function checkConnections(): Promise<void> {
  const start = [
    postgresServer.path === undefined ? undefined : startPostgres,
    mariadbServer.path === undefined ? undefined : startMariadb,
  ] as const;
  if (start.includes(undefined)) {
    if (process.env.CI === 'true') throw new Error('Postgres or MariaDB is missing');
    console.log('– without Postgres or MariaDB, which this machine does not have');
  }
  const [postgres, mariadb] = [await start[0]?.(), await start[1]?.()];
  try {
    const urls = [postgres?.connectionString ?? '', mariadb?.uri ?? ''];
    console.log(run(process.execPath, ['dist/connections.js', ...urls], place).trimEnd());
  } finally {
    await Promise.all([postgres?.stop(), mariadb?.stop()]);
  }
}

/** The only snippet with this module in `typescript`, as against `ts`: see test/docs/snippets.spec.ts. */
function snippet(file: string, module: string): string {
  const fences = readFileSync(join(root, file), 'utf8').matchAll(/^```typescript\n(.*?)^```/gms);
  const codes = [...fences].map(([, code = '']) => code).filter((code) => code.includes(`'${module}'`));
  const [code, ...more] = codes;
  if (code === undefined || more.length > 0)
    throw new Error(`${file} has ${codes.length} snippets with ${module}`);
  return code;
}
