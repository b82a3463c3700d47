import type { StorageView, StorageRow } from './storage.js';

export interface PageOptions {
  /** The highest number of rows in memory. @defaultValue 250 */
  readonly size?: number;
  readonly reverse?: boolean;
}

/**
 * All rows of a range, a page at a time. Rows may be changed meanwhile: a row that was there all the time comes once, one
 * that is added may come.
 */
export async function* rangePages(
  storage: StorageView,
  from: string,
  to: string,
  { size = 250, reverse = false }: PageOptions = {},
): AsyncGenerator<readonly StorageRow[]> {
  for (let [first, end] = [from, to]; ;) {
    const rows = await storage.range(first, end, { limit: size, reverse });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1)?.[0];
    if (last === undefined || rows.length < size) return;
    if (reverse) end = last;
    else first = `${last} `; // a blank is the first printable character: no key lies between
  }
}
