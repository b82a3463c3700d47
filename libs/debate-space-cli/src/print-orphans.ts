import type { DebateSpaceService, OrphanedUser } from 'nestjs-debate-space';
import { namedUid } from 'nestjs-debate-space/internal';
import type { CommandContext } from './cli-context.js';
import { Failure } from './failure.js';
import { progressDisplay } from './progress-display.js';
import { counted } from './text.js';
import { uidsOf, type UidList } from './uid-list.js';

/** An account takes about 100 bytes, with a UUID for its uid. */
const MAX_ACCOUNTS = 5_000_000;

/**
 * The accounts of the host, read to the end. One that cannot be read would make its user an orphan, so the whole list is refused.
 * @throws {Failure} when the list is empty, cannot be read, or has more than `maxAccounts`
 */
export async function accountsOf(list: UidList, maxAccounts = MAX_ACCOUNTS): Promise<ReadonlySet<string>> {
  const accounts = new Set<string>();
  for await (const uid of uidsOf(await list.open(), list.name)) {
    if (accounts.add(uid).size > maxAccounts)
      throw new Failure('failed', `The list has more than ${maxAccounts} accounts, too many to hold.`);
  }
  if (accounts.size > 0) return accounts;
  throw new Failure(
    'usage',
    'The list of accounts is empty, so every user would be an orphan. Nothing was requested.',
  );
}

/**
 * Writes the users that have no account as text that `erase --file` reads: the uids, one a line, or – with `--json` – each
 * user as JSON on a line. How far it has come goes to stderr.
 */
export async function printOrphans(
  service: DebateSpaceService,
  accounts: ReadonlySet<string>,
  allowNoMatch: boolean,
  { io, output }: CommandContext,
): Promise<void> {
  const { interrupted: signal } = io;
  const counts = { users: 0, orphans: 0, unusable: 0 };
  const { total = 0 } = await service.listUsers({ perPage: 1 }, { signal });
  // On a terminal, a bar and the uids would tear each other.
  const display = io.stdout.isTTY === true ? undefined : progressDisplay(io);
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
      else if (typeof namedUid(user.uid) === 'string') yield `${user.uid}\n`;
      else counts.unusable += 1; // a line break in it would name other users
    }
  }
  try {
    await output.stream(lines(service.orphans(findAccounts, { signal, allowNoMatch })));
  } finally {
    display?.end();
  }
  output.note(`${counted(counts.users, 'user')} with a uid, ${counts.orphans} of them without an account.`);
  if (counts.unusable > 0)
    output.note(`${counts.unusable} of these are left out: their uids cannot be erased. --json shows them.`);
}
