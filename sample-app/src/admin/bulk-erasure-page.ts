import type { DebateSpaceErasures, ErasureDryRun } from 'nestjs-debate-space';
import { erasureView, type ErasureView } from '../erasure/erasure-view.js';
import { erasurePath } from './erasure-path.js';
import { EMPTY_FORM, type BulkErasureForm, type BulkErasureMistakes } from './bulk-erasure-form.js';
import { dryRunView, type DryRunView } from './dry-run-view.js';

/** What `views/admin/erasures.eta` shows. */
export interface BulkErasurePage {
  readonly erasures: readonly ErasureRow[];
  readonly form: BulkErasureForm;
  readonly mistakes: BulkErasureMistakes;
  readonly dryRun: DryRunView | undefined;
}

type ErasureRow = ErasureView & { readonly path: string };

interface FilledIn {
  readonly form?: BulkErasureForm;
  readonly mistakes?: BulkErasureMistakes;
  readonly dryRun?: ErasureDryRun;
}

const MAX_LISTED = 50;

export async function bulkErasurePage(
  all: DebateSpaceErasures,
  { form = EMPTY_FORM, mistakes = {}, dryRun }: FilledIn = {},
): Promise<BulkErasurePage> {
  const erasures: ErasureRow[] = [];
  for await (const status of all.list()) {
    erasures.push({ ...erasureView(status), path: erasurePath(status.reference) });
    if (erasures.length === MAX_LISTED) break;
  }
  return { erasures, form, mistakes, dryRun: dryRun && dryRunView(dryRun) };
}
