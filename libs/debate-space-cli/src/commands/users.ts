import { InvalidArgumentError, Option, type Command } from 'commander';
import type { DebateSpaceService, OrphanedUser, UserPage } from 'nestjs-debate-space';
import type { CliContext } from '../cli-context.js';
import { Failure } from '../failure.js';
import { counted, records, table } from '../output.js';
import { withPlugin } from '../plugin.js';
import { progressDisplay } from '../progress.js';
import { readUids, UID_FORMATS, type UidListOptions } from '../uid-list.js';
import { exportUsers, type ExportOptions } from '../users-export.js';

type Filters = Readonly<Record<string, readonly string[]>>;
interface ListOptions {
  readonly page?: number;
  readonly perPage?: number;
  readonly filter?: Filters;
}
interface OrphansOptions extends UidListOptions {
  readonly accounts: string;
  readonly allowNoMatch?: boolean;
}

/** Reads users; changes nothing. */
export function addUsers(program: Command, cli: CliContext): void {
  const { output } = cli;
  const { interrupted: signal } = cli.io;
  const users = program
    .command('users')
    .description('read the users that are registered in the debate space');
  const withService = (work: (service: DebateSpaceService) => Promise<void>) =>
    withPlugin(cli, {}, ({ service }) => work(service));

  users
    .command('list')
    .description('one page of the users')
    .option('--page <n>', 'which page, from 1', Number)
    .option('--per-page <n>', "users per page, from 1 to 100; default: the service's", Number)
    .option('--filter <name=value>', 'such as created_at.gte=2026-01-01; may be repeated', filter)
    .action(({ filter, page, perPage }: ListOptions) =>
      withService(async (service) => {
        const listed = await service.listUsers({ ...filter, page, perPage }, { signal });
        output.answer(listed, pageText(listed));
      }),
    );

  users
    .command('find <uid>')
    .description('one user, by the uid')
    .action((uid: string) =>
      withService(async (service) => {
        // Without an end: a person who waits at a terminal can interrupt it.
        const found = await service.findUser(uid, { signal, maxPages: Number.MAX_SAFE_INTEGER });
        if (!found)
          throw new Failure('failed', 'The user is not found: the service lists no user of this uid.');
        output.answer(found, table(Object.entries(found)));
      }),
    );

  users
    .command('export')
    .description('all users, as NDJSON or CSV')
    .addOption(new Option('--format <format>', 'of the answer').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--columns <names>', 'which fields, separated by commas', columns)
    .option('--filter <name=value>', 'as of users list; may be repeated', filter)
    .option('--out <file>', 'a new file, readable by you only; default: stdout')
    .action((options: ExportOptions) => {
      if (output.json && options.out === undefined && options.format === 'csv')
        throw new Failure('usage', 'With --json, CSV goes to a file: add --out <file>.');
      return withService((service) => exportUsers(service, cli, options));
    });

  users
    .command('orphans')
    .description('the users whose account in your app is gone, as a list for erase --file')
    .requiredOption(
      '--accounts <file>',
      'the uids of all accounts of your app: .csv, .ndjson, or .txt with one a line; - is stdin',
    )
    .addOption(new Option('--format <format>', 'of the file; default: by its extension').choices(UID_FORMATS))
    .option('--column <name>', 'of a CSV, or the field of NDJSON; default: uid')
    .option('--allow-no-match', 'continue when the first 100 users have no account')
    .action(async ({ accounts: file, format, column, allowNoMatch = false }: OrphansOptions) => {
      // Before anything is requested: an account that cannot be read would make its user an orphan.
      const accounts = await readUids({ file, format, column }, cli.io);
      await withService((service) => printOrphans(service, accounts, allowNoMatch, cli));
    });
}

/** Writes the users that have no account: their uids, one a line, as `erase --file` reads them, or with `--json` each user. */
async function printOrphans(
  service: DebateSpaceService,
  accounts: { has(uid: string): boolean },
  allowNoMatch: boolean,
  { io, output }: CliContext,
): Promise<void> {
  const { interrupted: signal, stdout } = io;
  const { namedUid } = await import('nestjs-debate-space/internal');
  const counts = { users: 0, orphans: 0, unusable: 0 };
  const { total = 0 } = await service.listUsers({ perPage: 1 }, { signal });
  // On a terminal, a bar and the uids would tear each other.
  const display = stdout.isTTY === true ? undefined : await progressDisplay(io);
  const findAccounts = (uids: readonly string[]): string[] => {
    const existing = uids.filter((uid) => accounts.has(uid));
    counts.users += uids.length;
    counts.orphans += uids.length - existing.length;
    display?.show(counts.users, Math.max(counts.users, total), ` | ${counts.orphans} without an account`);
    return existing;
  };
  async function* lines(orphans: AsyncIterable<OrphanedUser>): AsyncGenerator<string> {
    for await (const user of orphans) {
      if (output.json) yield `${JSON.stringify(user)}\n`;
      else if (isLine(namedUid(user.uid))) yield `${user.uid}\n`;
      else counts.unusable += 1; // a list of lines would name nobody, or somebody else
    }
  }
  const orphans = service.orphans(findAccounts, { signal, allowNoMatch });
  const isWritten = await output.stream(lines(orphans)).finally(display?.end);
  if (!isWritten) return;
  output.note(`${counted(counts.users, 'user')} with a uid, ${counts.orphans} of them without an account.`);
  if (counts.unusable > 0)
    output.note(
      `Left out: ${counted(counts.unusable, 'user')} whose uid cannot stand in a list. --json shows all.`,
    );
}

/** Whether the reader of a list of lines gets the very uid: it skips blanks, and a byte order mark at the beginning. */
function isLine(uid: unknown): boolean {
  return typeof uid === 'string' && uid.trim() !== '' && !uid.startsWith('\uFEFF');
}

function filter(text: string, earlier: Filters = {}): Filters {
  const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError('It must be name=value.');
  return { ...earlier, [name]: [...(earlier[name] ?? []), value] };
}

function columns(text: string): readonly string[] {
  const names = text.split(',');
  if (!names.includes('') && new Set(names).size === names.length) return names;
  throw new InvalidArgumentError('It must be names of fields, each of them once.');
}

function pageText({ users, page, totalPages, total, nextPage }: UserPage): string {
  const rows = users.map(({ uid, full_name, first_name, last_name, email, created_at: created }) => {
    const name = full_name ?? [first_name, last_name].filter(Boolean).join(' ');
    return { uid, name, email, created };
  });
  const of = totalPages === undefined ? '' : ` of ${totalPages}`;
  const all = total === undefined ? '' : `, ${total} users in all`;
  const next = nextPage === undefined ? '' : `; next: --page ${nextPage}`;
  return `${records(rows)}\n\npage ${page}${of}${all}${next}`;
}
