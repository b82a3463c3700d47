import type { ErasureDryRun } from 'nestjs-debate-space';
import { count, userCount } from '../pages/in-words.js';

const SHOWN = 10;

/** What `views/admin/erase-many.eta` shows of a dry run. */
export interface DryRunView {
  /** How many the form would erase. */
  readonly users: string;
  readonly figures: readonly (readonly [name: string, number: string])[];
  /** Which entries of the list need a look. */
  readonly remarks: readonly (readonly [name: string, entries: string])[];
}

export function dryRunView(dryRun: ErasureDryRun): DryRunView {
  const remarks: DryRunView['remarks'] = [
    ['Entries that cannot be a user', entries(dryRun.invalidItems, dryRun.invalid)],
    ['Entries not found', entries(dryRun.unknownItems, dryRun.unknown)],
  ];
  return {
    users: userCount(dryRun.distinct),
    figures: figures(dryRun),
    remarks: remarks.filter(([, entries]) => entries !== ''),
  };
}

function figures({ total, distinct, duplicates, invalid, known, unknown, underWay }: ErasureDryRun) {
  return [
    ['Entries', count(total)],
    ['Different users', count(distinct)],
    ['Entries that repeat one', count(duplicates)],
    ['Entries that cannot be a user', count(invalid)],
    ['Registered in the debate space', count(known)],
    ['Not found', count(unknown)],
    ['Already requested', count(underWay)],
  ] as const;
}

function entries(items: readonly number[], total: number): string {
  const shown = items.slice(0, SHOWN).join(', ');
  return total > SHOWN ? `${shown}, and ${count(total - SHOWN)} more` : shown;
}
