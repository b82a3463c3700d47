import type { ErasureMode } from 'nestjs-debate-space';
import * as v from 'valibot';

const text = v.pipe(v.optional(v.string(), ''), v.trim());

/** The form of a list of erasures. Its page shows again what was typed, so that nothing is refused here. */
export const ERASURE_FORM = v.object({
  uids: text,
  mode: v.fallback(v.optional(v.picklist(['anonymize', 'delete'])), undefined),
  reference: text,
  confirmation: text,
});
export type ErasureForm = v.InferOutput<typeof ERASURE_FORM>;
/** What is wrong with the form, by field. */
export type Mistakes = Partial<Record<keyof ErasureForm, string>>;

export const EMPTY_FORM: ErasureForm = { uids: '', mode: undefined, reference: '', confirmation: '' };

/** One user name a line. Empty lines count, so that the numbers of the dry run are those of the lines. */
export function linesOf({ uids }: ErasureForm): string[] {
  return uids === '' ? [] : uids.split(/\r?\n/).map((line) => line.trim());
}

export function isConfirmed(form: ErasureForm): form is ErasureForm & { mode: ErasureMode } {
  return Object.keys(mistakesIn(form)).length === 0;
}

export function mistakesIn({ uids, mode, reference, confirmation }: ErasureForm): Mistakes {
  return {
    ...(uids === '' && { uids: 'Enter the users.' }),
    ...(mode === undefined && { mode: 'Choose what to do.' }),
    ...(reference === '' && { reference: 'Enter a reference.' }),
    ...(mode !== undefined && confirmation !== mode && { confirmation: `To confirm, type: ${mode}` }),
  };
}

/** The example list: more users than the rate limit lets through in a minute, and one whom the app vetoes. */
export const EXAMPLE = [...Array.from({ length: 92 }, (_, n) => memberUid(n + 1)), 'admin'].join('\n');

/** The users whom the simulator has besides those who can log in. */
export function memberUid(number: number): string {
  return `member-${String(number).padStart(3, '0')}`;
}
