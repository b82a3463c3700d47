import type { ErasureStatus } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import { counted } from './text.js';

/** @throws {Failure} when users of a reference are not erased although its work ended; says how many, and why */
export function requireErased({ reference, failed, vetoed, canceled }: ErasureStatus): void {
  if (failed > 0) {
    throw new Failure(
      'unfinished',
      `${counted(failed, 'user')} could not be erased; see the log, fix the cause, then: debate-space erasures retry ${reference}`,
    );
  }
  const notErased = [
    ...(vetoed > 0 ? [`${counted(vetoed, 'user')} vetoed by erasure.beforeErase`] : []),
    ...(canceled > 0 ? [`${counted(canceled, 'user')} canceled`] : []),
  ];
  if (notErased.length > 0) {
    throw new Failure(vetoed > 0 ? 'vetoed' : 'canceled', `Not erased: ${notErased.join(', ')}.`);
  }
}
