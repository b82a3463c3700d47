import type { Verdict } from 'debate-space-fixtures/endings/judge.js';

/** A row on a stack, and what came of it. */
export interface Cell extends Pick<Verdict, 'checked' | 'wrong'> {
  readonly stack: string;
  readonly name: string;
  /** Whether somebody is told of. */
  readonly isTold: boolean;
}

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
