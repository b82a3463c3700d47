import { setImmediate } from 'node:timers/promises';
import type { DebateSpaceUser } from '../remote/user-page.js';
import { UidDigests } from '../uid-digests.js';
import type { UidRow } from './uid-row.js';

/** What an erasure of a list would come to. Nothing was asked for, and nothing is kept. */
export interface ErasureDryRun {
  /** Rows of the list: distinct, duplicates and invalid together. */
  readonly total: number;
  readonly distinct: number;
  /** Rows with the uid of an earlier one. */
  readonly duplicates: number;
  /** Rows with no usable uid. */
  readonly invalid: number;
  /** Of the distinct uids: those the service lists a user of. */
  readonly known: number;
  readonly unknown: number;
  /** Of the distinct uids: those whose erasure was asked for already and is not over. */
  readonly underWay: number;
}

const ASKED_AT_ONCE = 250;

/**
 * Counts, and changes nothing. Reads the list once, then walks the service's users once, until all are found. Holds 64
 * bits of each uid's SHA-256 in place of the uid, so two different ones may pass for one: for a million uids among a
 * million users a count is wrong with a chance of one in 12 million.
 * @param rows the list, as `readRows` reads it
 * @param users all users of the service; not asked for when the list has no uid
 * @param underWay how many of these, at most 250 and each given once, are to be erased already
 */
export async function dryRun(
  rows: AsyncIterable<UidRow>,
  users: AsyncIterable<DebateSpaceUser>,
  underWay: (uids: readonly string[]) => Promise<number>,
): Promise<ErasureDryRun> {
  const asked = new UidDigests();
  const counts = { total: 0, duplicates: 0, invalid: 0, underWay: 0 };
  let some: string[] = [];
  for await (const { uid } of rows) {
    counts.total += 1;
    // A list that is there already must not hold up the app.
    if (counts.total % ASKED_AT_ONCE === 0) await setImmediate();
    if (uid === undefined) counts.invalid += 1;
    else if (!asked.add(uid)) counts.duplicates += 1;
    else if (some.push(uid) === ASKED_AT_ONCE) {
      counts.underWay += await underWay(some);
      some = [];
    }
  }
  if (some.length > 0) counts.underWay += await underWay(some);

  const distinct = asked.size;
  if (distinct > 0) {
    for await (const { uid } of users) {
      if (typeof uid === 'string') asked.delete(uid);
      if (asked.size === 0) break;
    }
  }
  return { ...counts, distinct, known: distinct - asked.size, unknown: asked.size };
}
