// Runs the recipes whose libraries cannot live in this workspace – better-auth's optional peers conflict with its
// devDependencies – with the packed tarballs, and with the very snippet that the documentation shows.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { manifestOf } from './manifest.js';
import { install, packInto, root, run } from './packed.js';
import { Skipped } from './test-crash/skipped.js';
import { PostgresServer } from './test-crash/postgres.js';

const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^12`);
/** The newest and the oldest that `docs/stateless-logins.md` names. */
const BETTER_AUTH = ['^1', '1.4.8'];
const others = ['typeorm', 'pg@^8', 'reflect-metadata', 'rxjs', '@types/node@20'];

const place = mkdtempSync(join(tmpdir(), 'debate-space-recipes-'));
try {
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type: 'module' }));
  install(place, [...packInto(place).map(({ tarball }) => tarball), ...nestPackages, ...others]);

  cpSync(join(root, 'scripts/check-recipes'), place, { recursive: true });
  writeFileSync(join(place, 'auth.ts'), snippet('docs/stateless-logins.md', 'better-auth'));
  writeFileSync(join(place, 'delete-account.ts'), snippet('docs/erasures-in-your-transaction.md', 'typeorm'));
  writeFileSync(join(place, 'existing-accounts.ts'), snippet('docs/orphans.md', 'typeorm'));
  // The types of these libraries are only here: `npm run typecheck` leaves the recipes to this.
  const { compilerOptions: own } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) =>
    readFileSync(path, 'utf8'),
  ).config as {
    readonly compilerOptions: object;
  };
  const compilerOptions = { ...own, paths: {}, rootDir: '.', outDir: 'dist' };
  writeFileSync(
    join(place, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['better-auth.ts', 'typeorm.ts'] }),
  );
  for (const wanted of BETTER_AUTH) {
    install(place, [`better-auth@${wanted}`]);
    run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);
    const told = run(process.execPath, ['dist/better-auth.js'], place);
    const { version } = manifestOf(join(place, 'node_modules/better-auth'));
    console.log(`✓ a host with better-auth ${version}, and the documentation’s snippet:\n${told.trimEnd()}`);
  }

  await checkTypeorm().catch((error: unknown) => {
    if (!(error instanceof Skipped) || error.isFailure) throw error;
    console.log(`– a host with TypeORM: ${error.message}`);
  });
} finally {
  rmSync(place, { recursive: true, force: true });
}

async function checkTypeorm(): Promise<void> {
  const postgres = new PostgresServer();
  await postgres.start();
  try {
    console.log(`✓ ${run(process.execPath, ['dist/typeorm.js', postgres.url], place).trimEnd()}`);
  } finally {
    await postgres.kill();
  }
}

/** The only snippet with this module in `typescript`, as against `ts`: see test/docs/readme.spec.ts. */
function snippet(file: string, module: string): string {
  const fences = readFileSync(join(root, file), 'utf8').matchAll(/^```typescript\n(.*?)^```/gms);
  const codes = [...fences].map(([, code = '']) => code).filter((code) => code.includes(`'${module}'`));
  const [code, ...others] = codes;
  if (code === undefined || others.length > 0)
    throw new Error(`${file} has ${codes.length} snippets with ${module}`);
  return code;
}
