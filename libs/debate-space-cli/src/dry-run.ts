import type { DebateSpaceErasures, ErasureDryRun, ErasureMode } from 'nestjs-debate-space';
import type { CommandContext } from './cli-context.js';
import { SuspiciousRowCounter, suspiciousTexts, type SuspiciousRows } from './suspicious-rows.js';
import { table } from './text.js';
import type { UidRow } from './uid-row.js';

/** What an erasure would come to. Of the rows without a uid, and of those whose user is not found, the first 100. */
export interface DryRun extends Omit<ErasureDryRun, 'invalidItems' | 'notFoundItems'>, SuspiciousRows {
  readonly invalidRows: readonly number[];
  readonly notFoundRows: readonly number[];
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
  const { invalidItems, notFoundItems, ...counts } = await erasures.dryRun(uids, options);
  const suspicious = new SuspiciousRowCounter();
  rows.forEach((row) => {
    suspicious.add(row);
  });
  const numbersOf = (items: readonly number[]) => items.map((item) => rows[item - 1]?.row ?? item);
  return {
    ...counts,
    invalidRows: numbersOf(invalidItems),
    notFoundRows: numbersOf(notFoundItems),
    ...suspicious.counts,
  };
}

export function dryRunText(counts: DryRun): string {
  const { total, distinct, duplicates, invalid, known, notFound, suspicious, alreadyRequested } = counts;
  const figures = {
    total,
    distinct,
    duplicates,
    invalid,
    known,
    'not found': notFound,
    suspicious,
    'already requested': alreadyRequested,
  };
  const rows = [
    ['rows without a uid', listed(counts.invalidRows, invalid)],
    ['not found in rows', listed(counts.notFoundRows, notFound)],
    ...suspiciousTexts(counts),
  ].filter(([, numbers]) => numbers !== '');
  return table([...Object.entries(figures).map(([name, value]) => [name, String(value)]), ...rows]);
}

function listed(rows: readonly number[], count: number): string {
  return rows.join(', ') + (count > rows.length ? ', …' : '');
}
