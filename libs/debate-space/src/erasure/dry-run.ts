import { setImmediate } from 'node:timers/promises';
import type { DebateSpaceUser } from '../remote/user-list.js';
import type { UidItem } from './uid-source.js';

/** What an erasure of a list would come to. Nothing was asked for, and nothing is kept. Items are counted from 1. */
export interface ErasureDryRun {
  /** Items of the list: distinct, duplicates and invalid together. */
  readonly total: number;
  readonly distinct: number;
  /** Items with the uid of an earlier one. */
  readonly duplicates: number;
  /** Items with no usable uid. */
  readonly invalid: number;
  /** The numbers of these items, at most the first 100. */
  readonly invalidItems: readonly number[];
  /** Of the distinct uids: those the service lists a user of. */
  readonly known: number;
  readonly unknown: number;
  /** The numbers of the items that have an unknown uid first, at most the first 100. */
  readonly unknownItems: readonly number[];
  /** Of the distinct uids: those whose erasure was asked for already and is not over. */
  readonly underWay: number;
}

const ASKED_AT_ONCE = 250;
const MAX_NUMBERS = 100;

/**
 * Counts, and changes nothing. Reads the list once, then walks the service's users once, until all are found. Keeps the
 * distinct uids of the list in memory.
 * @param items the list, as `uidItems` reads it
 * @param users all users of the service; not asked for when the list has no uid
 * @param underWay how many of these, at most 250 and each given once, are to be erased already
 */
export async function dryRun(
  items: AsyncIterable<UidItem>,
  users: AsyncIterable<DebateSpaceUser>,
  underWay: (uids: readonly string[]) => Promise<number>,
): Promise<ErasureDryRun> {
  const unseen = new Map<string, number>(); // with the number of the uid's first item
  const invalidItems: number[] = [];
  const counts = { total: 0, duplicates: 0, invalid: 0, underWay: 0 };
  let some: string[] = [];
  for await (const { item, uid } of items) {
    counts.total += 1;
    // A list that is there already must not hold up the app.
    if (counts.total % ASKED_AT_ONCE === 0) await setImmediate();
    if (uid === undefined) {
      counts.invalid += 1;
      if (counts.invalid <= MAX_NUMBERS) invalidItems.push(item);
    } else if (unseen.has(uid)) counts.duplicates += 1;
    else {
      unseen.set(uid, item);
      if (some.push(uid) < ASKED_AT_ONCE) continue;
      counts.underWay += await underWay(some);
      some = [];
    }
  }
  if (some.length > 0) counts.underWay += await underWay(some);

  const distinct = unseen.size;
  if (distinct > 0) {
    for await (const { uid } of users) {
      if (typeof uid === 'string') unseen.delete(uid);
      if (unseen.size === 0) break;
    }
  }
  const unknown = unseen.size;
  const unknownItems = [...unseen.values()].slice(0, MAX_NUMBERS);
  return { ...counts, invalidItems, distinct, known: distinct - unknown, unknown, unknownItems };
}
