// Runs the recipes whose libraries cannot live in this workspace – better-auth's optional peers conflict with its
// devDependencies – with the packed tarballs, and with the very snippet that the documentation shows.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, packInto, root, run } from './packed.mjs';
import { Skipped } from './test-crash/skipped.mjs';
import { PostgresServer } from './test-crash/postgres.mjs';

const nestPackages = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@^12`);
const others = ['better-auth@^1', 'typeorm', 'pg@^8', 'reflect-metadata', 'rxjs', '@types/node@20'];

const place = mkdtempSync(join(tmpdir(), 'debate-space-recipes-'));
try {
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'host', private: true, type: 'module' }));
  install(place, [...packInto(place).map(({ tarball }) => tarball), ...nestPackages, ...others]);

  const recipes = join(root, 'scripts/check-recipes');
  cpSync(join(recipes, 'auth-options.mjs'), join(place, 'auth-options.js'));
  writeFileSync(join(place, 'auth.ts'), snippet('docs/stateless-logins.md', 'better-auth'));
  writeFileSync(join(place, 'delete-account.ts'), snippet('docs/erasures-in-your-transaction.md', 'typeorm'));
  const options = { module: 'nodenext', target: 'es2022', strict: true, allowJs: true, outDir: 'dist' };
  const compilerOptions = { ...options, skipLibCheck: true, types: ['node'] };
  writeFileSync(
    join(place, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['auth.ts', 'delete-account.ts'] }),
  );
  run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place], place);
  cpSync(join(recipes, 'better-auth.mjs'), join(place, 'dist/better-auth.mjs'));
  const told = run(process.execPath, ['dist/better-auth.mjs'], place);
  const { version } = JSON.parse(readFileSync(join(place, 'node_modules/better-auth/package.json'), 'utf8'));
  console.log(`✓ a host with better-auth ${version}, and the documentation’s snippet:\n${told.trimEnd()}`);

  await checkTypeorm(recipes).catch((error) => {
    if (!(error instanceof Skipped) || error.isFailure) throw error;
    console.log(`– a host with TypeORM: ${error.message}`);
  });
} finally {
  rmSync(place, { recursive: true, force: true });
}

async function checkTypeorm(recipes) {
  const postgres = new PostgresServer();
  await postgres.start();
  try {
    cpSync(join(recipes, 'typeorm.mjs'), join(place, 'dist/typeorm.mjs'));
    console.log(`✓ ${run(process.execPath, ['dist/typeorm.mjs', postgres.url], place).trimEnd()}`);
  } finally {
    await postgres.kill();
  }
}

/** The only snippet with this module in `typescript`, as against `ts`: see test/readme.spec.ts. */
function snippet(file, module) {
  const fences = readFileSync(join(root, file), 'utf8').matchAll(/^```typescript\n(.*?)^```/gms);
  const codes = [...fences].map(([, code]) => code).filter((code) => code.includes(`'${module}'`));
  if (codes.length !== 1) throw new Error(`${file} has ${codes.length} snippets with ${module}`);
  return codes[0];
}
