// Logouts for the benchmarks of the queue, and how they get there.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { LogoutEntry } from '../../libs/debate-space/src/logout/logout.js';
import type { LogoutQueue } from './built-queue.js';

/** As a session that has ended now leaves it: the id begins with the moment. */
export function newEntry(): LogoutEntry {
  const endedAt = Date.now();
  const uid = `user-${randomUUID()}`;
  const id = `${String(endedAt).padStart(15, '0')}-${randomUUID()}`;
  return { id, uid, reason: 'destroyed', endedAt };
}

/** Does the work for all items, `atOnce` at a time, in their order. */
export async function inParallel<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const loop = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}

/** Adds one at a time. @returns how long each took, in milliseconds */
export async function append(
  queue: LogoutQueue,
  entries: readonly LogoutEntry[],
  atOnce: number,
): Promise<number[]> {
  const times: number[] = [];
  await inParallel(entries, atOnce, async (entry) => {
    const from = performance.now();
    await queue.add([entry]);
    times.push(performance.now() - from);
  });
  return times;
}
