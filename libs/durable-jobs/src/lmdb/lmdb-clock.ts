import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { monotonicMs } from '../monotonic-clock.js';

/** The row of {@link StoredClock}. */
export const CLOCK = 'clock';
/** A commit notes the time in the file when the last note is older. */
export const NOTE_MS = 60_000;
/** A machine whose clock has moved on by more was not off for that long: its clock is wrong. */
const MAX_OFF_MS = 30 * 24 * 60 * 60_000;

/** What the processes of one boot share. */
export interface StoredClock {
  readonly boot: string;
  /** What the clock of the storage is ahead of the machine's monotonic clock, in ms. */
  readonly offset: number;
  /** No commit is more than {@link NOTE_MS} later. */
  readonly seen: number;
}

/** Linux names each boot. Elsewhere a restart shows as a monotonic clock that has gone back. */
export const bootId = (): Promise<string> =>
  readFile('/proc/sys/kernel/random/boot_id', 'utf8').then((id) => id.trim(), hostname);

/**
 * The date counts only where the monotonic clock cannot continue: in a new file, after a boot, on another machine. Even
 * then it must be later than the last commit, and not by years: everything that waits or is kept for a time depends on it.
 */
export function continuedClock(stored: StoredClock | undefined, boot: string): StoredClock {
  const monotonic = monotonicMs();
  if (stored?.boot === boot && stored.offset + monotonic >= stored.seen) return stored;
  const date = Date.now();
  const latest = stored ? stored.seen + NOTE_MS : date;
  const now = date > latest && date < latest + MAX_OFF_MS ? date : latest;
  return { boot, offset: now - monotonic, seen: now };
}
