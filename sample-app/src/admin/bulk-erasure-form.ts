import type { ErasureMode } from 'nestjs-debate-space';
import type { UploadedList } from './uploaded-lists.js';

/** The fields of the forms in `views/admin/erasures.eta` and `orphans.eta`, as they were filled in. */
export interface BulkErasureForm {
  readonly mode: ErasureMode | undefined;
  readonly reference: string;
  readonly column: string;
  readonly confirmation: string;
  /** Of the list that came with it: a page cannot keep the file itself. */
  readonly fileName?: string;
}

export const EMPTY_FORM: BulkErasureForm = {
  mode: undefined,
  reference: '',
  column: 'uid',
  confirmation: '',
};

/** What is wrong with it, by field. */
export type BulkErasureMistakes = Partial<Record<keyof BulkErasureForm | 'list', string>>;

/** Why a form comes back. */
export class BulkErasureRefused extends Error {
  constructor(readonly mistakes: BulkErasureMistakes) {
    super('The form is not filled in as it has to be.');
  }
}

export function bulkErasureForm(body: unknown, list?: UploadedList): BulkErasureForm {
  const fields = (body ?? {}) as Partial<Record<keyof BulkErasureForm, unknown>>;
  const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');
  return {
    mode: fields.mode === 'anonymize' || fields.mode === 'delete' ? fields.mode : undefined,
    reference: text(fields.reference),
    column: text(fields.column) || 'uid',
    confirmation: text(fields.confirmation),
    ...(list && { fileName: list.originalname }),
  };
}

/** The form as it may be carried out. @throws {BulkErasureRefused} */
export function confirmed(form: BulkErasureForm): BulkErasureForm & { readonly mode: ErasureMode } {
  const { mode, reference, confirmation } = form;
  const mistakes: BulkErasureMistakes = {};
  if (mode === undefined) mistakes.mode = 'Choose what is to be done.';
  else if (confirmation.replace(/ise$/, 'ize') !== mode) mistakes.confirmation = `To confirm, type: ${mode}`;
  if (reference === '') mistakes.reference = 'Give it a reference.';
  if (mode === undefined || Object.keys(mistakes).length > 0) throw new BulkErasureRefused(mistakes);
  return { ...form, mode };
}

/** The file of the form. @throws {BulkErasureRefused} */
export function given(list: UploadedList | undefined): UploadedList {
  if (list) return list;
  throw new BulkErasureRefused({ list: 'Choose the file with the users.' });
}
