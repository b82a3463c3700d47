import { InvalidArgumentError } from '../errors.js';
import { uidProblem } from '../remote/uid.js';

/**
 * One row of a list of uids: a uid, or why there is none – a sentence about the row without anything that stands in
 * it. Rows are counted from 1; in CSV the header row is row 1, as a spreadsheet counts.
 */
export type UidRow =
  | { readonly row: number; readonly uid: string; readonly problem?: undefined }
  | { readonly row: number; readonly uid?: undefined; readonly problem: string };

export function uidRow(row: number, uid: unknown): UidRow {
  const problem = uidProblem(uid);
  return problem === undefined ? { row, uid: uid as string } : { row, problem: `the uid ${problem}` };
}

/** Says no to a list of uids. Never has a value of it, nor an error that may have one. */
export function unreadable(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(problem, {
    operation: 'requestErasure',
    retryable: false,
    outcome: 'not-sent',
    attempts: 0,
  });
}
