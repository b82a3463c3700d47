import { describe, expect, it } from '@jest/globals';
import { Containment } from './containment.js';
import { EndReporter, type ReportedEnd } from './end-reporter.js';
import type { SessionEnd } from './session-end.js';

function reporting(onSessionEnd?: (end: SessionEnd) => void | Promise<void>): {
  readonly reporter: EndReporter;
  readonly ends: SessionEnd[];
  readonly faults: string[];
} {
  const ends: SessionEnd[] = [];
  const faults: string[] = [];
  const listener = onSessionEnd ?? ((end: SessionEnd) => void ends.push(end));
  const containment = new Containment((where, error) => faults.push(`${where}: ${(error as Error).name}`));
  return { reporter: new EndReporter({ onSessionEnd: listener }, containment, 250), ends, faults };
}

const endOf = (uid: string, at = performance.now()): ReportedEnd => ({ uid, reason: 'destroyed', at });

describe('an end', () => {
  it('is reported with its moment', () => {
    const { reporter, ends } = reporting();
    const before = Date.now();
    expect(reporter.report(endOf('alice'), [])).toBeUndefined();
    expect(ends).toEqual([{ uid: 'alice', reason: 'destroyed', endedAt: expect.any(Date) as unknown }]);
    const endedAt = ends[0]?.endedAt.getTime() ?? 0;
    expect(endedAt).toBeGreaterThanOrEqual(before - 20);
    expect(endedAt).toBeLessThanOrEqual(Date.now());
  });

  it('is reported once for each user and request, unless it came after the report', () => {
    const { reporter, ends } = reporting();
    const response = {};
    for (const uid of ['alice', 'alice', 'bob']) void reporter.report(endOf(uid), [response]);
    expect(ends.map(({ uid }) => uid)).toEqual(['alice', 'bob']);
    const next = endOf('alice', performance.now() + 1);
    void reporter.report(next, [response], next.at);
    expect(ends).toHaveLength(3);
  });

  it('is reported each time where no request is known', () => {
    const { reporter, ends } = reporting();
    for (let n = 0; n < 2; n += 1) void reporter.report(endOf('alice'), []);
    expect(ends).toHaveLength(2);
  });

  it.each([
    {
      does: 'throws',
      onSessionEnd: (): never => {
        throw new RangeError('of the app');
      },
    },
    { does: 'rejects', onSessionEnd: () => Promise.reject(new RangeError('of the app')) },
  ])('is a fault, and no error, where the listener $does', async ({ onSessionEnd }) => {
    const { reporter, faults } = reporting(onSessionEnd);
    await reporter.report(endOf('alice'), []);
    expect(faults).toEqual(['onSessionEnd: RangeError']);
  });
});

it('moments keep their order, however little they are apart', () => {
  const { reporter, ends } = reporting();
  const now = performance.now();
  for (let n = 0; n < 200; n += 1) void reporter.report(endOf('alice', now + n / 50), []);
  const times = ends.map(({ endedAt }) => endedAt.getTime());
  expect(times).toEqual(times.toSorted((one, other) => one - other));
});
