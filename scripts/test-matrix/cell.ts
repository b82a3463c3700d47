import type { EndingCell, Observed } from 'debate-space-fixtures/endings.js';

/** A cell of the table, and what came of it: what was observed, or an error. */
export type Cell = Omit<EndingCell, 'observe'> & ((Observed & { readonly error?: undefined }) | Failed);

type Failed = { readonly error: string } & Partial<Record<keyof Observed, undefined>>;

/** The cells of one host, on one Node.js. */
export interface Column {
  /** Its major version. */
  readonly nest: string;
  /** Its major version. */
  readonly node: string;
  /** Of the packages that are installed there. */
  readonly versions: ReadonlyMap<string, string>;
  readonly cells: readonly Cell[];
  /** What brought the run down, if something did. */
  readonly trouble?: string | undefined;
}
