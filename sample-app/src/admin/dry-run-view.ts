import type { ErasureDryRun } from 'nestjs-debate-space';
import { count, userCount } from '../pages/in-words.js';

const SHOWN = 10;

interface Remark {
  readonly name: string;
  readonly entries: string;
  /** Behind a click, where there are many: those that the dry run names. */
  readonly more?: { readonly title: string; readonly entries: string };
}

/** What `views/admin/erase-many.eta` shows of a dry run. */
export interface DryRunView {
  /** How many the form would erase. */
  readonly users: string;
  readonly figures: readonly (readonly [name: string, number: string])[];
  /** Which entries of the list need a look. */
  readonly remarks: readonly Remark[];
}

export function dryRunView(dryRun: ErasureDryRun): DryRunView {
  const { invalid, invalidItems, notFound, notFoundItems } = dryRun;
  return {
    users: userCount(dryRun.distinct),
    figures: figures(dryRun),
    remarks: [
      ...remark('Entries that cannot be a user', invalidItems, invalid),
      ...remark('Entries not found', notFoundItems, notFound),
    ],
  };
}

function figures({ total, distinct, duplicates, invalid, known, notFound, alreadyRequested }: ErasureDryRun) {
  return [
    ['Entries', count(total)],
    ['Different users', count(distinct)],
    ['Entries that repeat one', count(duplicates)],
    ['Entries that cannot be a user', count(invalid)],
    ['Registered in the debate space', count(known)],
    ['Not found', count(notFound)],
    ['Already requested', count(alreadyRequested)],
  ] as const;
}

function remark(name: string, items: readonly number[], total: number): readonly Remark[] {
  if (total === 0) return [];
  const first = items.slice(0, SHOWN).join(', ');
  if (total <= SHOWN) return [{ name, entries: first }];
  const title = total > items.length ? `The first ${items.length}` : 'All of them';
  const more = { title, entries: items.join(', ') };
  return [{ name, entries: `${first}, and ${count(total - SHOWN)} more`, more }];
}
