import { InvalidArgumentError, Option, type Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';

const DIALECTS = ['postgres', 'mysql', 'sqlite'] as const;

interface Chosen {
  readonly dialect: (typeof DIALECTS)[number];
  readonly schema?: string;
  readonly prefix?: string;
  readonly from: number;
}

/** The tables of the storage. Connects to nothing. */
export function addStorage(program: Command, { output }: CliContext): void {
  const dialects = new Option('--dialect <name>', 'of the database; mysql also for MariaDB').choices(
    DIALECTS,
  );
  program
    .command('storage')
    .description('the tables that your app keeps logouts and erasures in')
    .command('migration')
    .description('print the SQL that creates the tables; runs nothing')
    .addOption(dialects.makeOptionMandatory())
    .option('--schema <name>', 'with postgres: the schema of the tables, which must exist (default: public)')
    .option('--prefix <text>', 'with mysql: the prefix of the table names')
    .option(
      '--from <version>',
      'print only the changes since this version of the tables, which the app names',
      versionOf,
      0,
    )
    .action(async ({ dialect, schema, prefix, from }: Chosen) => {
      if (schema !== undefined && dialect !== 'postgres')
        throw new Failure('usage', '--schema goes with --dialect postgres only.');
      if (prefix !== undefined && dialect !== 'mysql')
        throw new Failure('usage', '--prefix goes with --dialect mysql only.');
      const { storageMigration } = await import('nestjs-debate-space/internal');
      const sql = storageMigration(dialect, schema ?? prefix, from);
      output.answer({ dialect, sql }, sql.trimEnd());
    });
}

function versionOf(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw new InvalidArgumentError('Give the version of the tables, such as 1.');
  return Number(text);
}
