import { uidProblem } from '../remote/uid.js';
import { invalid } from './batch-request.js';

/** Uids: an array, another iterable, or an async iterable such as a database cursor. */
export type UidSource = Iterable<string> | AsyncIterable<string>;

/** One item of a source, counted from 1: a uid, or what is wrong with it, in words that do not repeat it. */
export type UidItem =
  | { readonly item: number; readonly uid: string; readonly problem?: undefined }
  | { readonly item: number; readonly uid?: undefined; readonly problem: string };

const HINT =
  'hint: parse it first; docs/gdpr.md has recipes for CSV, NDJSON and lines ("How do I erase many?")';

/**
 * Checks the items of a source one by one. Takes the next item when the one before is used up, and ends the source when
 * the loop is left.
 * @throws {@link InvalidArgumentError} immediately, when the source is no iterable of uids, such as a text or a stream of
 *   text; from the loop, at an item of bytes
 */
export function uidItems(source: UidSource): AsyncGenerator<UidItem> {
  if (typeof source === 'string' || ArrayBuffer.isView(source) || isStreamOfText(source))
    throw invalid(`the source must give uids, and is text or bytes. ${HINT}`);
  const iterable = Object(source) as object;
  if (!(Symbol.asyncIterator in iterable || Symbol.iterator in iterable))
    throw invalid('the source must be an array of uids, another iterable or an async iterable');
  return itemsOf(source);
}

/**
 * The uids of a source, like {@link uidItems}.
 * @throws {@link InvalidArgumentError} also from the loop, at the first item that is no uid, with the item's number
 */
export function uidsOf(source: UidSource): AsyncGenerator<string> {
  return validUids(uidItems(source));
}

async function* itemsOf(source: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<UidItem> {
  let item = 0;
  for await (const uid of source) {
    item += 1;
    if (ArrayBuffer.isView(uid)) throw invalid(`item ${item} must be a uid, and is bytes. ${HINT}`);
    const problem = uidProblem(uid);
    if (problem === undefined) yield { item, uid: uid as string };
    else if (isText(uid)) yield { item, problem: `it has a line break, so it is text and no uid. ${HINT}` };
    else yield { item, problem: `the uid ${problem}` };
  }
}

async function* validUids(items: AsyncIterable<UidItem>): AsyncGenerator<string> {
  for await (const { item, uid, problem } of items) {
    if (problem !== undefined) throw invalid(`item ${item}: ${problem}`);
    yield uid;
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
