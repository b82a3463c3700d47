import type { DebateSpaceService, OrphanedUser } from 'nestjs-debate-space';
import { namedUid } from 'nestjs-debate-space/internal';
import type { CommandContext } from './cli-context.js';
import { Failure } from './failure.js';
import { progressDisplay } from './progress.js';
import { SuspiciousRowCounter, suspicionOf, suspiciousTexts } from './suspicious-rows.js';
import { counted } from './output.js';
import { uidsOf, type UidList, type UidRows, type UidRow } from './uid-list.js';

/** An account takes about 100 bytes, with a UUID for its uid. */
const MAX_ACCOUNTS = 5_000_000;

export interface Accounts {
  readonly uids: ReadonlySet<string>;
  /** The rows whose uid is probably not that of the account. */
  readonly suspicious: ReadonlyMap<string, UidRow>;
}

/**
 * The accounts of the host, read to the end. One that cannot be read would make its user an orphan, so the whole list is refused.
 * @throws {Failure} when the list is empty, cannot be read, or has more than `maxAccounts`
 */
export async function accountsOf(list: UidList, maxAccounts = MAX_ACCOUNTS): Promise<Accounts> {
  const uids = new Set<string>();
  const suspicious = new Map<string, UidRow>();
  async function* watched(rows: UidRows): AsyncGenerator<UidRow> {
    for await (const row of rows) {
      if (row.uid !== undefined && suspicionOf(row.uid) !== undefined) suspicious.set(row.uid, row);
      yield row;
    }
  }
  for await (const uid of uidsOf(watched(await list.open()), list.name)) {
    if (uids.add(uid).size > maxAccounts)
      throw new Failure('failed', `The list has more than ${maxAccounts} accounts, too many to hold.`);
  }
  if (uids.size > 0) return { uids, suspicious };
  throw new Failure(
    'usage',
    'The list of accounts is empty, so every user would be an orphan. Nothing was requested.',
  );
}

/**
 * Writes the users that have no account as text that `erase --file` reads: the uids, one a line, or – with `--json` – each
 * user as JSON on a line. How far it has come goes to stderr.
 * @throws {Failure} at the end, when suspicious accounts are those of no user: their users may be among the orphans
 */
export async function printOrphans(
  service: DebateSpaceService,
  { uids: accounts, suspicious }: Accounts,
  allowNoMatch: boolean,
  { io, output }: CommandContext,
): Promise<void> {
  const { interrupted: signal } = io;
  const unmatched = new Map(suspicious);
  const counts = { users: 0, orphans: 0, unusable: 0 };
  const { total = 0 } = await service.listUsers({ perPage: 1 }, { signal });
  // On a terminal, a bar and the uids would tear each other.
  const display = io.stdout.isTTY === true ? undefined : progressDisplay(io);
  const findAccounts = (uids: readonly string[]): string[] => {
    const existing = uids.filter((uid) => accounts.has(uid));
    existing.forEach((uid) => unmatched.delete(uid));
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
    const isWritten = await output.stream(lines(service.orphans(findAccounts, { signal, allowNoMatch })));
    if (!isWritten) return;
  } finally {
    display?.end();
  }
  output.note(`${counted(counts.users, 'user')} with a uid, ${counts.orphans} of them without an account.`);
  if (counts.unusable > 0)
    output.note(`${counts.unusable} of these are left out: their uids cannot be erased. --json shows them.`);
  const doubtful = new SuspiciousRowCounter();
  unmatched.forEach((row) => {
    doubtful.add(row);
  });
  const doubts = suspiciousTexts(doubtful.counts).map(([text, rows]) => `\n  ${text}, in rows ${rows}`);
  if (doubts.length > 0 && counts.orphans > 0)
    throw new Failure(
      'usage',
      `Do not erase this list. Accounts look damaged, and are those of no user:${doubts.join('')}\nTheir users may be among the orphans. Correct these rows, or remove those that are right.`,
    );
}
