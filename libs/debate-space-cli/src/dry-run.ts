import type { DebateSpaceErasures, ErasureDryRun, ErasureMode } from 'nestjs-debate-space';
import type { CommandContext } from './cli-context.js';
import { table } from './text.js';
import type { UidRow } from './uid-row.js';

/** What an erasure would come to. Of the rows without a uid, and of those whose uid is unknown, the first 100. */
export interface DryRun extends Omit<ErasureDryRun, 'invalidItems' | 'unknownItems'> {
  readonly invalidRows: readonly number[];
  readonly unknownRows: readonly number[];
}

/** Looks up which users of the list the service knows. Nothing is stored or erased. */
export async function dryRunOf(
  erasures: DebateSpaceErasures,
  rows: readonly UidRow[],
  mode: ErasureMode,
  { io, output }: CommandContext,
): Promise<DryRun> {
  output.note('Looking up who is registered …');
  const uids = rows.map(({ uid }) => uid ?? ''); // counted as invalid
  const options = { mode, signal: io.interrupted };
  const { invalidItems, unknownItems, ...counts } = await erasures.dryRun(uids, options);
  const numbersOf = (items: readonly number[]) => items.map((item) => rows[item - 1]?.row ?? item);
  return { ...counts, invalidRows: numbersOf(invalidItems), unknownRows: numbersOf(unknownItems) };
}

export function dryRunText(counts: DryRun): string {
  const { total, distinct, duplicates, invalid, known, unknown, underWay } = counts;
  const figures = { total, distinct, duplicates, invalid, known, unknown, 'under way': underWay };
  const rows = [
    ['rows without a uid', listed(counts.invalidRows, invalid)],
    ['unknown in rows', listed(counts.unknownRows, unknown)],
  ].filter(([, numbers]) => numbers !== '');
  return table([...Object.entries(figures).map(([name, value]) => [name, String(value)]), ...rows]);
}

function listed(rows: readonly number[], count: number): string {
  return rows.join(', ') + (count > rows.length ? ', …' : '');
}
