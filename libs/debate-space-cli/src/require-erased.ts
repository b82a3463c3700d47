import type { ErasureStatus } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import type { Output } from './output.js';
import { counted } from './text.js';

/**
 * Says how many users of a reference are not erased although its work ended, and why.
 * @throws {Failure} unless some were erased, and all others were not found
 */
export function requireErased(
  { reference, done, notFound, failed, vetoed, canceled }: ErasureStatus,
  output: Pick<Output, 'note'>,
): void {
  if (failed > 0) {
    throw new Failure(
      'unfinished',
      `${counted(failed, 'user')} could not be erased; see the log, fix the cause, then: debate-space erasures retry ${reference}`,
    );
  }
  const notErased = [
    ...(vetoed > 0 ? [`${counted(vetoed, 'user')} vetoed by erasure.beforeErase`] : []),
    ...(canceled > 0 ? [`${counted(canceled, 'user')} canceled`] : []),
    ...(notFound > 0 ? [`${counted(notFound, 'user')} not found`] : []),
  ];
  const text = `Not erased: ${notErased.join(', ')}.`;
  if (vetoed > 0 || canceled > 0) throw new Failure(vetoed > 0 ? 'vetoed' : 'canceled', text);
  if (notFound > 0 && done === 0) throw nobodyFound('Nobody was erased');
  if (notFound > 0) output.note(`${text} --dry-run names the rows.`);
}

/** @param result what a list came to of which the service knows no user */
export function nobodyFound(result: string): Failure {
  return new Failure(
    'notFound',
    `${result}: the service knows none of the users`,
    'check the uids, and the column; who is erased already is not found again.',
  );
}
