import type { UidRow } from './uid-list.js';

/** The rows of a list whose uid is probably not the one that the list means. */
export interface SuspiciousRows {
  readonly suspicious: number;
  /** The first 100 of them, and what their uid has or is. */
  readonly suspiciousRows: readonly { readonly row: number; readonly reason: string }[];
}

const MAX_ROWS = 100;

const reasons: readonly (readonly [RegExp, string])[] = [
  [/\uFEFF/, 'a byte order mark, as where files were joined'],
  [/[\p{Cf}\p{Default_Ignorable_Code_Point}]/u, 'an invisible character'],
  [/^\p{Z}|\p{Z}$/u, 'a blank at its start or end'],
  [/(?! )\p{Z}/u, 'a blank that is no plain space'],
  [/^\p{Quotation_Mark}|\p{Quotation_Mark}$/u, 'a quotation mark at its start or end'],
  // With a sign or a fraction: without them, many hexadecimal ids look alike.
  [/^[+-]?\d+(?:[.,]\d+e[+-]?|e[+-])\d+$/i, 'a number in scientific notation'],
  [/^[+-]?(?:\d+[.,]0+|\d{1,3}(?:[.,' ]\d{3})+)$/, 'a number with decimals or separators'],
  [/^(?:[([<]?null[)\]>]?|none|nil|nan|n\/?a|undefined|\\n|[-–—]+|\?+)$/i, 'a word for a missing value'],
  [/^#(?:[\p{Lu}\d/]+[!?]|N\/A|N[AV]|#+)$/u, 'an error of a spreadsheet'],
  [/^=/, 'a formula'],
];

/** What a uid has or is that makes it suspicious. */
export function suspicionOf(uid: string): string | undefined {
  return reasons.find(([pattern]) => pattern.test(uid))?.[1];
}

/** Counts the suspicious rows of a list. */
export class SuspiciousRowCounter {
  #suspicious = 0;
  readonly #suspiciousRows: { row: number; reason: string }[] = [];

  get counts(): SuspiciousRows {
    return { suspicious: this.#suspicious, suspiciousRows: this.#suspiciousRows };
  }

  add({ row, uid }: UidRow): void {
    const reason = uid === undefined ? undefined : suspicionOf(uid);
    if (reason === undefined) return;
    this.#suspicious += 1;
    if (this.#suspiciousRows.length < MAX_ROWS) this.#suspiciousRows.push({ row, reason });
  }
}

/** For each reason a text, and the numbers of the rows. */
export function suspiciousTexts({ suspicious, suspiciousRows }: SuspiciousRows): [string, string][] {
  const more = suspicious > suspiciousRows.length ? ', …' : '';
  return reasons.flatMap(([, reason]) => {
    const rows = suspiciousRows.filter((each) => each.reason === reason).map(({ row }) => row);
    return rows.length > 0 ? [[`uid with ${reason}`, rows.join(', ') + more]] : [];
  });
}
