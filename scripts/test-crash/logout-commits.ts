// The purpose of a commit of the logout queue, told by its keys: for the faults and disturbances between queue and storage.
import type { StorageValues } from 'nestjs-debate-space';

interface Claimed {
  /** The key of the row that says when the logout is due. */
  readonly due: string;
  /** The key of the logout. */
  readonly record: string;
  readonly dueAt: number;
  readonly isRow: boolean;
}

/** Whether a commit adds logouts: it makes sure that they are not there yet. */
export function isAdd(checks: StorageValues): boolean {
  const [first] = checks;
  return first !== undefined && first[0].startsWith('pending:') && first[1] === undefined;
}

/**
 * What a commit claims: a claim checks nothing but the rows of logouts that are due. The rows of leases that are renewed
 * are not due yet.
 * @param now by the clock of the storage
 */
export function claimedIn(checks: StorageValues, now: number): Claimed[] {
  const claimed = [...checks.keys()].map((due) => {
    const [family, micros, id] = due.split(':');
    return {
      due,
      record: `pending:${String(id)}`,
      dueAt: Math.floor(Number(micros) / 1000),
      isRow: family === 'due',
    };
  });
  return claimed.every(({ isRow, dueAt }) => isRow && dueAt <= now) ? claimed : [];
}

/** The rows that say when logouts are due, as a commit writes them. */
export function dueRowsIn(changes: StorageValues): string[] {
  return [...changes].flatMap(([key, turn]) => (key.startsWith('due:') && turn !== undefined ? [key] : []));
}

/** Whether a commit does nothing but begin one lease anew, whose row is one of these. */
export function renews(checks: StorageValues, leases: ReadonlySet<string>): boolean {
  const [due, ...others] = checks.keys();
  return due !== undefined && others.length === 0 && leases.has(due);
}
