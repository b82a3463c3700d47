import { hash } from 'node:crypto';
import type { Database, RootDatabase } from 'lmdb';

export type LmdbRows = Database<string, string>;

/** A row and its value; `undefined`: there is no such row. */
export type LmdbRow = readonly [rows: LmdbRows, key: string, value: string | undefined];

/** Each check is a call inside the call of the check before: more would exhaust the stack. */
const MAX_NESTED = 200;

/** How every database of the file is opened. */
export const ROWS = { encoding: 'string', useVersions: true } as const;

/**
 * Makes all changes if every check holds, or else none. LMDB's own thread does it, without a callback: a process that
 * exits while a JavaScript callback has the lock of the file hangs forever, or ends with SIGSEGV.
 * @param meta where a commit of many checks keeps how far it has come; the row is gone when the commit ends
 */
export async function conditionalWrite(
  root: RootDatabase,
  meta: LmdbRows,
  checks: readonly LmdbRow[],
  changes: readonly LmdbRow[],
): Promise<boolean> {
  const held: Promise<boolean>[] = [];
  const change = (): void => {
    for (const row of changes) set(row);
  };
  if (checks.length === 0) held.push(root.batch(change));
  else if (checks.length <= MAX_NESTED) nest(checks, change, held);
  else {
    const inStages = (): void => {
      const last = Math.ceil(checks.length / MAX_NESTED);
      const reached = (stage: number): LmdbRow => [meta, 'stage', String(stage)];
      set(reached(0));
      for (let n = 0; n < last; n += 1) {
        const some = checks.slice(n * MAX_NESTED, (n + 1) * MAX_NESTED);
        const reach = (): void => {
          set(reached(n + 1));
        };
        nest([reached(n), ...some], reach, held);
      }
      nest([reached(last)], change, held);
      set([meta, 'stage', undefined]);
    };
    held.push(root.batch(inStages));
  }
  // A check inside a check that fails may seem to hold: all of them count.
  return (await Promise.all(held)).every(Boolean);
}

/** Does `work` if every check holds. @param held takes the outcome of each check */
function nest(checks: readonly LmdbRow[], work: () => void, held: Promise<boolean>[]): void {
  const within = (inner: () => void, [rows, key, value]: LmdbRow) => {
    return () => {
      const isHeld =
        value === undefined ? rows.ifNoExists(key, inner) : rows.ifVersion(key, versionOf(value), inner);
      held.push(isHeld);
    };
  };
  checks.reduceRight(within, work)();
}

function set([rows, key, value]: LmdbRow): void {
  void (value === undefined ? rows.remove(key) : rows.put(key, value, versionOf(value)));
}

/**
 * LMDB compares numbers: a value is compared by 53 bits of its hash. A check goes wrong only if another process puts, under
 * the same key, another value of the same number: one conflict in 9,000,000,000,000,000, whatever the number of rows.
 */
export function versionOf(value: string): number {
  const bytes = hash('sha256', value, 'buffer');
  return bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) >> 3);
}
