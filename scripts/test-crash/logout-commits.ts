// The purpose of a commit of the logout queue, told by its keys: for the faults and disturbances between queue and storage.
import type { StorageValues } from 'nestjs-debate-space';

interface Claimed {
  /** The key of the row that says when the logout is due. */
  readonly due: string;
  /** The key of the logout. */
  readonly record: string;
  /** Its place in the order of the logouts. */
  readonly position: string;
  readonly dueAt: number;
  readonly isRow: boolean;
}

/** Whether a commit adds logouts: it makes sure that they are not there yet. */
export function isAdd(checks: StorageValues): boolean {
  const [first] = checks;
  return first !== undefined && first[0].startsWith('logoutpending:') && first[1] === undefined;
}

/**
 * What a commit claims: a claim checks nothing but the rows of logouts that are due. The rows of leases that are renewed
 * are not due yet.
 * @param now by the clock of the storage
 */
export function claimedIn(checks: StorageValues, now: number): Claimed[] {
  const claimed = [...checks.keys()].map((due) => {
    const [family, position = '', id] = due.split(':');
    return {
      due,
      record: `logoutpending:${String(id)}`,
      position,
      dueAt: Math.floor(Number(position.slice(1)) / 1000),
      isRow: family === 'logoutdue',
    };
  });
  return claimed.every(({ isRow, dueAt }) => isRow && dueAt <= now) ? claimed : [];
}

const isDue = (key: string): boolean => key.startsWith('logoutdue:');

/** The rows that say when logouts are due, as a commit writes them. */
export function dueRowsIn(changes: StorageValues): string[] {
  return [...changes].flatMap(([key, born]) => (isDue(key) && born !== undefined ? [key] : []));
}

/** Whether a commit does nothing but begin leases anew, whose rows are some of these. */
export function renews(checks: StorageValues, changes: StorageValues, leases: ReadonlySet<string>): boolean {
  const due = [...checks.keys()].filter(isDue);
  return due.length > 0 && due.every((row) => leases.has(row)) && [...changes.keys()].every(isDue);
}
