// Runs the recipes whose libraries are not in this workspace, with the packed tarballs, and with the very snippets that the
// documentation shows. Their types are only in the folder of the host: `npm run typecheck` leaves the recipes to this.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresServer, startPostgres } from '#support/servers/postgres.js';
import ts from 'typescript';
import { newApp, withPacked } from './driver.js';
import { manifestOf } from './manifest.js';
import { install, root, run } from './packed.js';

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
const { compilerOptions: own } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) =>
  readFileSync(path, 'utf8'),
).config as { readonly compilerOptions: object };

await withPacked(async (folder, packed) => {
  const place = newApp(folder, 'host', { type: 'module' });
  const tarballs = packed.map(({ tarball }) => tarball);
  await install(place, [
    ...tarballs,
    ...nestPackages,
    ...connections,
    ...others,
    `better-auth@${BETTER_AUTH[0] ?? ''}`,
  ]);
  cpSync(join(root, 'scripts/check-recipes'), place, { recursive: true });
  const write = (name: string, text: string): void => {
    writeFileSync(join(place, name), text);
  };
  write('auth.ts', snippet('docs/stateless-logins.md', 'better-auth'));
  write('existing-accounts.ts', snippet('docs/erasure-recipes.md', 'typeorm'));
  await writeConnections(place, write);
  const compile = async (...files: string[]): Promise<void> => {
    const compilerOptions = { ...own, paths: {}, rootDir: '.', outDir: 'dist' };
    write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
    await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);
  };
  await compile('better-auth.ts', 'connections.ts');
  await checkBetterAuth(place);
  await checkConnections(place);
  for (const older of BETTER_AUTH.slice(1)) {
    await install(place, [`better-auth@${older}`]);
    await compile('better-auth.ts');
    await checkBetterAuth(place);
  }
});

async function checkBetterAuth(place: string): Promise<void> {
  const told = await run(process.execPath, ['dist/better-auth.js'], place);
  const { version } = manifestOf(join(place, 'node_modules/better-auth'));
  console.log(`✓ a host with better-auth ${version}, and the documentation’s snippet:\n${told.trimEnd()}`);
}

/** The recipes for Postgres, and what the page says about MySQL. */
async function writeConnections(place: string, write: (name: string, text: string) => void): Promise<void> {
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

  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }; // nothing is migrated: spares a download
  const clients = { prisma: 'postgresql', 'prisma-mysql': 'mysql' };
  const generating = Object.entries(clients).map(([name, provider]) => {
    const output = `provider = "prisma-client"\noutput = "./generated/${name}"\nimportFileExtension = "js"`;
    write(
      `${name}.prisma`,
      `generator client {\n${output}\n}\ndatasource db {\nprovider = "${provider}"\n}\n`,
    );
    return run('npx', ['prisma', 'generate', '--schema', `${name}.prisma`], place, env);
  });
  await Promise.all(generating);
}

async function checkConnections(place: string): Promise<void> {
  const isMissing = postgresServer.path === undefined || mariadbServer.path === undefined;
  if (isMissing && process.env.CI === 'true') throw new Error('Postgres or MariaDB is missing');
  if (isMissing) console.log('– without Postgres or MariaDB, which this machine does not have');
  const postgres = postgresServer.path === undefined ? undefined : await startPostgres();
  const mariadb = mariadbServer.path === undefined ? undefined : await startMariadb();
  try {
    const urls = [postgres?.connectionString ?? '', mariadb?.uri ?? ''];
    console.log((await run(process.execPath, ['dist/connections.js', ...urls], place)).trimEnd());
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
