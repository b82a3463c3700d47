import type { DebateSpaceErasures, ErasureDryRun, UnreadableErasure } from 'nestjs-debate-space';
import { erasureView, type ErasureView } from '../erasure/erasure-view.js';
import { count, moment } from '../pages/in-words.js';
import { erasurePath } from './erasure-path.js';
import type { BulkErasureForm, BulkErasureMistakes } from './bulk-erasure-form.js';

/** What `views/admin/erasures.eta` shows. */
export interface BulkErasurePage {
  readonly erasures: readonly ErasureRow[];
  readonly form: BulkErasureForm;
  readonly mistakes: BulkErasureMistakes;
  readonly dryRun: DryRunView | undefined;
}

type ErasureRow = Pick<ErasureView, 'reference' | 'what' | 'stateText' | 'askedAt'> & {
  readonly path: string;
  /** Absent when its record cannot be read. */
  readonly counts?: ErasureView['counts'];
};

interface DryRunView {
  readonly figures: readonly (readonly [name: string, number: string])[];
  /** Which entries of the list need a look. */
  readonly remarks: readonly (readonly [name: string, entries: string])[];
}

interface FilledIn {
  readonly form?: BulkErasureForm;
  readonly mistakes?: BulkErasureMistakes;
  readonly dryRun?: ErasureDryRun;
}

const MAX_LISTED = 50;
const EMPTY: BulkErasureForm = { mode: undefined, reference: '', column: 'uid', confirmation: '' };

export async function bulkErasurePage(
  all: DebateSpaceErasures,
  { form = EMPTY, mistakes = {}, dryRun }: FilledIn = {},
): Promise<BulkErasurePage> {
  const erasures: ErasureRow[] = [];
  for await (const status of all.list()) {
    const view = status.state === 'unreadable' ? unreadableView(status) : erasureView(status);
    erasures.push({ ...view, path: erasurePath(status.reference) });
    if (erasures.length === MAX_LISTED) break;
  }
  return { erasures, form, mistakes, dryRun: dryRun && dryRunView(dryRun) };
}

function unreadableView({ reference, askedAt, cause }: UnreadableErasure) {
  return { reference, what: '–', stateText: `cannot be read: ${cause}`, askedAt: moment(askedAt) };
}

function dryRunView(dryRun: ErasureDryRun): DryRunView {
  const remarks: DryRunView['remarks'] = [
    ['Entries that cannot be a user', entries(dryRun.invalidItems, dryRun.invalid)],
    ['Entries not registered there', entries(dryRun.unknownItems, dryRun.unknown)],
  ];
  return { figures: figures(dryRun), remarks: remarks.filter(([, entries]) => entries !== '') };
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

function entries(items: readonly number[], count: number): string {
  return items.join(', ') + (count > items.length ? ' …' : '');
}
