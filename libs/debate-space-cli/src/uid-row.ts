import { namedUid } from 'nestjs-debate-space/internal';

/**
 * One row of a list of uids: a uid, or why there is none, in words that do not repeat the row. Rows are counted from 1;
 * in CSV the header row is row 1, as in a spreadsheet.
 */
export type UidRow =
  | { readonly row: number; readonly uid: string; readonly problem?: undefined }
  | { readonly row: number; readonly uid?: undefined; readonly problem: string };

export function uidRow(row: number, value: unknown): UidRow {
  const uid = namedUid(value);
  return typeof uid === 'string' ? { row, uid } : { row, problem: `the uid ${uid.problem}` };
}
