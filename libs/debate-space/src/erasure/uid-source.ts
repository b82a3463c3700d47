import { setImmediate } from 'node:timers/promises';
import { namedUid } from '../uid-rule.js';
import { invalidArgument } from '../errors.js';
import { raceAbort } from '../async/combined-signal.js';
import type { DebateSpaceUser } from '../service/calls/listed-users.js';

/** Uids: an array, another iterable, or an async iterable such as a database cursor. */
export type UidSource = Iterable<string> | AsyncIterable<string>;

/** One item of a source, counted from 1: a uid, or what is wrong with it, in words that do not repeat it. */
export type UidItem =
  | { readonly item: number; readonly uid: string; readonly problem?: undefined }
  | { readonly item: number; readonly uid?: undefined; readonly problem: string };

/** What an erasure of a list would come to. Nothing was requested, and nothing is kept. Items are counted from 1. */
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
  readonly notFound: number;
  /** The numbers of the items with whose uid the service lists no user, at most the first 100. */
  readonly notFoundItems: readonly number[];
  /** Of the distinct uids: those whose erasure was requested already and is not over. */
  readonly alreadyRequested: number;
}

const ASKED_AT_ONCE = 250;
const MAX_NUMBERS = 100;
const HINT =
  'hint: parse it first; docs/erasure-recipes.md has recipes for CSV, NDJSON and lines ("Uids from a file")';

/**
 * Checks the items of a source one by one. Takes the next item when the one before is used up, and ends the source when
 * the loop is left.
 * @param signal makes the loop reject, also while it waits for the next item
 * @throws {@link InvalidArgumentError} immediately, when the source is no iterable of uids, such as a text or a stream of
 *   text; from the loop, at an item of bytes
 */
export function uidItems(source: UidSource, signal?: AbortSignal): AsyncGenerator<UidItem> {
  if (typeof source === 'string' || ArrayBuffer.isView(source) || isStreamOfText(source))
    throw invalid(`the source must give uids, and is text or bytes. ${HINT}`);
  const iterable = Object(source) as object;
  if (!(Symbol.asyncIterator in iterable || Symbol.iterator in iterable))
    throw invalid('the source must be an array of uids, another iterable or an async iterable');
  const items = itemsOf(source);
  return signal ? untilAborted(items, signal) : items;
}

/**
 * The uids of a source, like {@link uidItems}.
 * @throws {@link InvalidArgumentError} also from the loop, at the first item that is no uid, with the item's number
 */
export function uidsOf(source: UidSource, signal?: AbortSignal): AsyncGenerator<string> {
  return validUids(uidItems(source, signal));
}

/** In pieces of this size, the last one smaller. */
export async function* chunksOf<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let chunk: T[] = [];
  for await (const item of items) {
    if (chunk.push(item) < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/**
 * Counts, and changes nothing. Reads the list once, then walks the service's users once, until all are found. Keeps the
 * distinct uids of the list in memory.
 * @param items the list, as `uidItems` reads it
 * @param users all users of the service; not read when the list has no uid
 * @param requested how many of these, at most 250 and each given once, are to be erased already
 */
export async function dryRun(
  items: AsyncIterable<UidItem>,
  users: AsyncIterable<DebateSpaceUser>,
  requested: (uids: readonly string[]) => Promise<number>,
): Promise<ErasureDryRun> {
  const unseen = new Map<string, number>(); // with the number of the uid's first item
  const invalidItems: number[] = [];
  const counts = { total: 0, duplicates: 0, invalid: 0, alreadyRequested: 0 };
  for await (const chunk of chunksOf(items, ASKED_AT_ONCE)) {
    await setImmediate(); // a list that is there already must not hold up the app
    counts.total += chunk.length;
    const fresh: string[] = [];
    for (const { item, uid } of chunk) {
      if (uid === undefined) {
        counts.invalid += 1;
        if (invalidItems.length < MAX_NUMBERS) invalidItems.push(item);
      } else if (unseen.has(uid)) counts.duplicates += 1;
      else {
        unseen.set(uid, item);
        fresh.push(uid);
      }
    }
    if (fresh.length > 0) counts.alreadyRequested += await requested(fresh);
  }
  const distinct = unseen.size;
  if (distinct > 0) {
    for await (const { uid } of users) {
      if (typeof uid === 'string') unseen.delete(uid);
      if (unseen.size === 0) break;
    }
  }
  const notFound = unseen.size;
  const notFoundItems = [...unseen.values()].slice(0, MAX_NUMBERS);
  return { ...counts, invalidItems, distinct, known: distinct - notFound, notFound, notFoundItems };
}

async function* itemsOf(source: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<UidItem> {
  let item = 0;
  for await (const given of source) {
    item += 1;
    if (ArrayBuffer.isView(given)) throw invalid(`item ${item} must be a uid, and is bytes. ${HINT}`);
    const uid = namedUid(given);
    if (typeof uid === 'string') yield { item, uid };
    else if (isText(given)) yield { item, problem: `it has a line break, so it is text and no uid. ${HINT}` };
    else yield { item, problem: `the uid ${uid.problem}` };
  }
}

async function* validUids(items: AsyncIterable<UidItem>): AsyncGenerator<string> {
  for await (const { item, uid, problem } of items) {
    if (problem !== undefined) throw invalid(`item ${item}: ${problem}`);
    yield uid;
  }
}

async function* untilAborted<T>(items: AsyncGenerator<T>, signal: AbortSignal): AsyncGenerator<T> {
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await raceAbort(items.next(), signal);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    items.return(undefined).catch(() => undefined); // not waited for: what hangs would hang here, too
  }
}

/** A stream of Node outside object mode: its pieces are no uids, even where they are strings. */
function isStreamOfText(source: unknown): boolean {
  return (Object(source) as { readableObjectMode?: unknown }).readableObjectMode === false;
}

/** Such as a piece of a stream of the web. */
function isText(uid: unknown): boolean {
  return typeof uid === 'string' && /[\r\n]/.test(uid);
}

function invalid(problem: string): Error {
  return invalidArgument('requestErasure', problem);
}
