import { describe, expect, it } from '@jest/globals';
import type { ErasureStatus } from 'nestjs-debate-space';
import { statusText } from './erasure-text.js';

const status: ErasureStatus = {
  reference: 'case-1',
  mode: 'delete',
  state: 'waiting',
  complete: true,
  requestedAt: new Date(0),
  total: 3,
  done: 0,
  notFound: 0,
  vetoed: 0,
  canceled: 0,
  failed: 0,
  waiting: 3,
};
const stateOf = (more: Partial<ErasureStatus>): string | undefined =>
  /^state +(.*)$/m.exec(statusText({ ...status, ...more }))?.[1];

describe('the state of an erasure', () => {
  it('is canceled, and nothing else, when its list was not read to its end', () => {
    const canceled = { complete: false, canceled: 3, waiting: 0, finishedAt: new Date(1) };
    expect(stateOf({ ...canceled, state: 'canceled' })).toBe('canceled');
  });

  it('says that nobody is erased before the list is read to its end', () => {
    for (const state of ['waiting', 'overdue'] as const)
      expect(stateOf({ complete: false, state })).toMatch(
        /^waiting for the rest of the list: nobody is erased/,
      );
  });

  it('has no counts of users who were left out, unless there are any', () => {
    const namesOf = (more: Partial<ErasureStatus>) =>
      statusText({ ...status, ...more }).match(/^(total|done|not found|vetoed|canceled|failed|waiting)/gm);
    expect(namesOf({})).toEqual(['total', 'done', 'waiting']);
    expect(namesOf({ vetoed: 1, failed: 1 })).toEqual(['total', 'done', 'vetoed', 'failed', 'waiting']);
  });
});
