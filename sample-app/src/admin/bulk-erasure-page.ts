import type { DebateSpaceErasures, ErasureDryRun } from 'nestjs-debate-space';
import { erasureView, type ErasureView } from '../erasure/erasure-view.js';
import { count } from '../pages/in-words.js';
import { erasurePath } from './erasure-path.js';
import type { BulkErasureForm, BulkErasureMistakes } from './bulk-erasure-form.js';

/** What `views/admin/erasures.eta` shows. */
export interface BulkErasurePage {
  readonly erasures: readonly (ErasureView & { readonly path: string })[];
  readonly form: BulkErasureForm;
  readonly mistakes: BulkErasureMistakes;
  readonly dryRun: readonly (readonly [name: string, number: string])[] | undefined;
}

interface FilledIn {
  readonly form?: BulkErasureForm;
  readonly mistakes?: BulkErasureMistakes;
  readonly dryRun?: ErasureDryRun;
}

const MOST_LISTED = 50;
const EMPTY: BulkErasureForm = { mode: undefined, reference: '', column: 'uid', confirmation: '' };

export async function bulkErasurePage(
  all: DebateSpaceErasures,
  { form = EMPTY, mistakes = {}, dryRun }: FilledIn = {},
): Promise<BulkErasurePage> {
  const erasures: BulkErasurePage['erasures'][number][] = [];
  for await (const status of all.list()) {
    erasures.push({ ...erasureView(status), path: erasurePath(status.reference) });
    if (erasures.length === MOST_LISTED) break;
  }
  return { erasures, form, mistakes, dryRun: dryRun && figures(dryRun) };
}

function figures({ total, distinct, duplicates, invalid, known, unknown, underWay }: ErasureDryRun) {
  return [
    ['Rows', count(total)],
    ['Different users', count(distinct)],
    ['Rows that repeat one', count(duplicates)],
    ['Rows that cannot be a user', count(invalid)],
    ['Registered in the debate space', count(known)],
    ['Not registered there', count(unknown)],
    ['Under way already', count(underWay)],
  ] as const;
}
