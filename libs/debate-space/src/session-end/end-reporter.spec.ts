import { describe, expect, it } from '@jest/globals';
import { Containment } from '../async/containment.js';
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

const endOf = (uid: string, at = Date.now()): ReportedEnd => ({ uid, reason: 'destroyed', at });

describe('an end', () => {
  it('is reported with its moment', () => {
    const { reporter, ends } = reporting();
    const before = Date.now();
    expect(reporter.report(endOf('alice', before), [])).toBeUndefined();
    expect(ends).toEqual([{ uid: 'alice', reason: 'destroyed', endedAt: expect.any(Date) as unknown }]);
    expect(ends[0]?.endedAt.getTime()).toBe(before);
  });

  it('is reported once for each user and request, unless it came after the report', () => {
    const { reporter, ends } = reporting();
    const response = {};
    for (const uid of ['alice', 'alice', 'bob']) void reporter.report(endOf(uid), [response]);
    expect(ends.map(({ uid }) => uid)).toEqual(['alice', 'bob']);
    const next = endOf('alice', Date.now() + 1);
    void reporter.report(next, [response], next.at);
    expect(ends).toHaveLength(3);
  });

  it('is reported once where one of several requests has caused a report before', () => {
    const { reporter, ends } = reporting();
    const [one, other, third] = [{}, {}, {}];
    for (const causes of [
      [one, other],
      [third, other],
      [undefined, one],
    ])
      void reporter.report(endOf('alice'), causes);
    expect(ends).toHaveLength(1);
    void reporter.report(endOf('alice'), [third]);
    expect(ends).toHaveLength(2);
  });

  it('is reported each time where no request is known', () => {
    const { reporter, ends } = reporting();
    for (const causes of [[], [], [undefined], [undefined]]) void reporter.report(endOf('alice'), causes);
    expect(ends).toHaveLength(4);
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
