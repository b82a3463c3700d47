import { NoAccountsError, type ErasureDryRun } from 'nestjs-debate-space';
import { count, userCount } from '../pages/in-words.js';
import { userRow, type UserRow } from '../users/user-list-page.js';
import { EMPTY_FORM, type BulkErasureForm, type BulkErasureMistakes } from './bulk-erasure-form.js';
import { dryRunView, type DryRunView } from './dry-run-view.js';
import type { FoundOrphans, Orphans } from './orphans.js';

/** What `views/admin/orphans.eta` shows. */
export interface OrphansPage {
  readonly form: BulkErasureForm;
  readonly mistakes: BulkErasureMistakes;
  readonly dryRun: DryRunView | undefined;
  /** Whether the look was refused, because nobody has an account. */
  readonly noAccounts: boolean;
  readonly total: number;
  /** Such as "2 users". */
  readonly found: string;
  readonly users: readonly UserRow[];
  /** How many are not shown; absent when all are. */
  readonly more: string | undefined;
  readonly digest: string;
}

interface FilledIn {
  readonly form?: BulkErasureForm;
  readonly mistakes?: BulkErasureMistakes;
  readonly dryRun?: ErasureDryRun;
}

const NOBODY: FoundOrphans = { uids: [], first: [], digest: '' };

/** The page after a look of its own. */
export async function lookedForOrphans(orphans: Orphans, filledIn?: FilledIn): Promise<OrphansPage> {
  try {
    return orphansPage(await orphans.find(), filledIn);
  } catch (error) {
    if (!(error instanceof NoAccountsError)) throw error;
    return { ...orphansPage(NOBODY, filledIn), noAccounts: true };
  }
}

export function orphansPage(
  { uids, first, digest }: FoundOrphans,
  { form = EMPTY_FORM, mistakes = {}, dryRun }: FilledIn = {},
): OrphansPage {
  const total = uids.length;
  const rest = total - first.length;
  return {
    form,
    mistakes,
    dryRun: dryRun && dryRunView(dryRun),
    noAccounts: false,
    total,
    found: userCount(total),
    users: first.map(userRow),
    more:
      rest > 0 ? `These are the first ${count(first.length)}; ${count(rest)} more are not shown.` : undefined,
    digest,
  };
}
