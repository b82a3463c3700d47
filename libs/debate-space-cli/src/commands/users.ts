import { InvalidArgumentError, type Command } from 'commander';
import type { DebateSpaceService, DebateSpaceUser, UserPage } from 'nestjs-debate-space';
import { addExamples, commandContext, type CliContext } from '../cli-context.js';
import type { ExportOptions } from '../users-export.js';
import { codeOf, Failure } from '../failure.js';
import { action, withPlugin } from '../plugin.js';
import { shown, table } from '../output.js';
import { UID_FORMATS } from '../uid-format.js';

interface OrphansOptions {
  readonly accounts: string;
  readonly format?: string;
  readonly column?: string;
  readonly allowNoMatch?: boolean;
}

/** Of the interface; the service refuses more. */
const MAX_PER_PAGE = 100;

type Filters = Readonly<Record<string, readonly string[]>>;

/** Reads users; changes nothing. */
export function addUsers(program: Command, cli: CliContext): void {
  const users = program
    .command('users')
    .description('read the users that are registered in the debate space');
  addExamples(
    users,
    'users list --per-page 50 --page 2',
    'users find 4711 --json',
    'users export --format csv --columns uid,email --out users.csv',
    'users orphans --accounts accounts.csv --column id > orphans.txt',
  );

  users
    .command('list')
    .description('one page of the users')
    .option('--page <n>', 'which page, from 1', whole(1))
    .option('--per-page <n>', "users per page, from 1 to 100; default: the service's", whole(1, MAX_PER_PAGE))
    .option(
      '--filter <name=value>',
      'a filter of the service, such as created_at.gte=2026-01-01; may be repeated',
      filter,
    )
    .action(
      action(
        cli,
        { worker: false },
        async ({ service }, context, options: { page?: number; perPage?: number; filter?: Filters }) => {
          const query = { ...options.filter, page: options.page, perPage: options.perPage };
          const page = await service.listUsers(query, { signal: cli.io.interrupted });
          context.output.answer(page, pageText(page));
        },
      ),
    );

  users
    .command('find')
    .description('one user, by the uid')
    .argument('<uid>', 'under which the user was registered')
    .action(
      action(cli, { worker: false }, async ({ service }, context, uid: string) => {
        const found = await findUser(service, uid, cli.io.interrupted);
        if (!found) throw new Failure('failed', 'The service lists no user of this uid.');
        const fields = Object.entries(found).map(([name, value]) => [shown(name), shown(value)]);
        context.output.answer(found, table(fields));
      }),
    );

  users
    .command('export')
    .description('all users, as NDJSON or CSV')
    .option('--format <format>', 'ndjson or csv', oneOf('ndjson', 'csv'), 'ndjson')
    .option('--columns <names>', 'which fields, separated by commas', columns)
    .option('--filter <name=value>', 'a filter of the service; may be repeated', filter)
    .option('--out <file>', 'a new file, readable by you only; default: stdout')
    .action(async (options: ExportOptions, command: Command) => {
      const context = await commandContext(command, cli);
      if (context.output.json && options.out === undefined && options.format === 'csv') {
        throw new Failure('usage', 'With --json, CSV goes to a file: add --out <file>.');
      }
      const { exportUsers } = await import('../users-export.js');
      await withPlugin(context, { worker: false }, ({ service }) => exportUsers(service, context, options));
    });

  users
    .command('orphans')
    .description('the users whose account in your app is gone, as a list for erase --file')
    .requiredOption(
      '--accounts <file>',
      'the uids of all accounts of your app: .csv, .ndjson or .txt, one a line; - is stdin',
    )
    .option(
      '--format <format>',
      'of the file: csv, ndjson or lines; default: by its extension',
      oneOf(...UID_FORMATS),
    )
    .option('--column <name>', 'of a CSV, or the member of an NDJSON object; default: uid')
    .option('--allow-no-match', 'go on when none of the first 100 users has an account')
    .action(async ({ accounts, format, column, allowNoMatch = false }: OrphansOptions, command: Command) => {
      const { uidList } = await import('../uid-list.js');
      const { accountsOf, printOrphans } = await import('../orphans.js');
      const list = uidList({ uids: [], file: accounts, format, column }, cli.io);
      const existing = await accountsOf(list); // before anything is requested
      const context = await commandContext(command, cli);
      await withPlugin(context, { worker: false }, ({ service }) =>
        printOrphans(service, existing, allowNoMatch, context),
      );
    });
}

/** Without an end: a person who waits at a terminal can interrupt it. */
async function findUser(
  debateSpace: DebateSpaceService,
  uid: string,
  signal: AbortSignal,
): Promise<DebateSpaceUser | undefined> {
  try {
    return await debateSpace.findUser(uid, { signal, maxPages: 1 });
  } catch (error) {
    if (codeOf(error) !== 'ERR_DEBATE_SPACE_PAGE_LIMIT') throw error;
  }
  for await (const user of debateSpace.users({ perPage: 100 }, { signal })) {
    if (user.uid === uid) return user;
  }
  return undefined;
}

function filter(text: string, earlier: Filters = {}): Filters {
  const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError('It must be name=value.');
  return { ...earlier, [name]: [...(earlier[name] ?? []), value] };
}

function columns(text: string): readonly string[] {
  const names = text.split(',');
  if (names.includes('') || new Set(names).size < names.length)
    throw new InvalidArgumentError('It must be names of fields, each of them once.');
  return names;
}

function oneOf<T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw new InvalidArgumentError(`It must be ${values.join(' or ')}.`);
    return found;
  };
}

function pageText({ users, page, totalPages, total, nextPage }: UserPage): string {
  const rows = users.map((user) => [
    shown(user.uid),
    shown(nameOf(user)),
    shown(user.email),
    shown(user.created_at),
  ]);
  const of = totalPages === undefined ? '' : ` of ${totalPages}`;
  const all = total === undefined ? '' : `, ${total} users in all`;
  const next = nextPage === undefined ? '' : `; next: --page ${nextPage}`;
  return `${table([['uid', 'name', 'e-mail', 'created'], ...rows])}\n\npage ${page}${of}${all}${next}`;
}

function nameOf({ full_name: full, first_name: first, last_name: last }: DebateSpaceUser): string {
  return full ?? [first, last].filter(Boolean).join(' ');
}

/** A whole number in an option of the command line. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}
