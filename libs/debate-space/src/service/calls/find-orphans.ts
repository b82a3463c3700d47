import { namedUid } from '../../uid-rule.js';
import { raceAbort } from '../../async/combined-signal.js';
import { invalidArgument, NoAccountsError } from '../../errors.js';
import { hasUid, type DebateSpaceUser } from './listed-users.js';

/**
 * Finds out which of these uids have an account in the host.
 * @param uids at most 100, each of them once
 * @returns the uids that have an account, spelled as in `uids`, in any order: an array, a `Set` or another iterable
 */
export type FindAccounts = (uids: readonly string[]) => Iterable<string> | Promise<Iterable<string>>;

/** A registered user of the debate space whose account in the host is gone, as the service lists the user. */
export interface OrphanedUser extends DebateSpaceUser {
  readonly uid: string;
}

/** What ends the search for orphans early, and what it refuses. */
export interface OrphansOptions {
  /** Ends the walk early: the loop then rejects with an `AbortError`, also while `findAccounts` is running. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Continues when `findAccounts` finds no account of the first users. Default: `false`, because a wrong column or an empty table would
   * make every user an orphan.
   */
  readonly allowNoMatch?: boolean | undefined;
}

/** What databases take in one `IN (…)` without a thought, and a page of the user list. */
const MAX_ASKED = 100;

/**
 * The users that have no account. Holds the users of one question at a time, and takes the next ones when those are used up.
 * @param users all registered users; the anonymized ones, which have no uid, are left out
 * @throws {@link NoAccountsError}, {@link InvalidArgumentError}, or what `findAccounts` throws, from the loop
 */
export async function* findOrphans(
  users: AsyncIterable<DebateSpaceUser>,
  findAccounts: FindAccounts,
  { signal, allowNoMatch = false }: OrphansOptions,
): AsyncGenerator<OrphanedUser> {
  let hasMatched = allowNoMatch;
  const asked = new Map<string, OrphanedUser>(); // a list that changes during the walk shows a user twice
  async function* orphansAmongAsked(): AsyncGenerator<OrphanedUser> {
    const existing = await existingOf(findAccounts, asked, signal);
    if (!hasMatched && existing.size === 0) throw new NoAccountsError(asked.size);
    hasMatched = true;
    for (const [uid, user] of asked) if (!existing.has(uid)) yield user;
    asked.clear();
  }
  for await (const user of users) {
    if (!hasUid(user)) continue;
    asked.set(user.uid, user);
    if (asked.size === MAX_ASKED) yield* orphansAmongAsked();
  }
  if (asked.size > 0) yield* orphansAmongAsked();
}

/** @throws {@link InvalidArgumentError} when the answer does not fit the question; the error of `findAccounts` */
async function existingOf(
  findAccounts: FindAccounts,
  asked: ReadonlyMap<string, OrphanedUser>,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const answer = (async (): Promise<unknown> => findAccounts([...asked.keys()]))();
  const found: unknown = await (signal ? raceAbort(answer, signal) : answer);
  if (!isIterable(found))
    throw refused(`must return an array or a Set of uids, and returned ${kindOf(found)}`);
  const existing = new Set<string>();
  for (const item of found) {
    const uid = typeof item === 'string' ? item : namedUid(item); // text as it was given: the service may list any
    if (typeof uid !== 'string')
      throw refused(
        `must return uids, which are strings, and one item is ${kindOf(item)}; hint: return rows.map((row) => String(row.id))`,
      );
    if (!asked.has(uid))
      throw refused(
        'returned a uid that was not in its argument; hint: query with the uids that it is given, and return them in the same spelling: uids differ in case',
      );
    existing.add(uid);
  }
  return existing;
}

/** A string is iterable, too, and gives letters. */
function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `of type ${typeof value}`;
}

function refused(problem: string): Error {
  return invalidArgument('orphans', `findAccounts ${problem}`);
}
