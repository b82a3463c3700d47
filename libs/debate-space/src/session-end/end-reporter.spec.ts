import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
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

it('moments keep their order, however little they are apart', () => {
  const { reporter, ends } = reporting();
  const now = performance.now();
  for (let n = 0; n < 200; n += 1) void reporter.report(endOf('alice', now + n / 50), []);
  const times = ends.map(({ endedAt }) => endedAt.getTime());
  expect(times).toEqual(times.toSorted((one, other) => one - other));
});

describe('the moment of an end', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000_000_000_000 });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const momentsAround = (setClock: () => void): (number | undefined)[] => {
    const { reporter, ends } = reporting();
    void reporter.report(endOf('alice', performance.now() - 5_000.5), []);
    setClock();
    void reporter.report(endOf('alice', performance.now()), []);
    return ends.map(({ endedAt }) => endedAt.getTime() - 1_000_000_000_000);
  };

  it.each([
    { what: 'is that of the end, not of the report', ms: 0, moment: 0 },
    { what: 'follows a clock that is put forward', ms: 3_600_000, moment: 3_600_000 },
    { what: 'follows a clock that is put back', ms: -20, moment: -20 },
    { what: 'does not follow what the clock wavers', ms: 19, moment: 0 },
  ])('$what', ({ ms, moment }) => {
    const setClock = (): void => {
      jest.setSystemTime(Date.now() + ms);
    };
    expect(momentsAround(setClock)).toEqual([-5_001, moment]);
  });
});

describe('a login', () => {
  const containment = new Containment(() => undefined);
  const onSessionEnd = (): void => undefined;

  it('is told to a listener that wants logins, with its moment', () => {
    const logins: unknown[] = [];
    const loggedIn = (uid: string, at: number): void =>
      void logins.push([uid, Math.abs(Date.now() - at) < 1_000]);
    const reporter = new EndReporter({ onSessionEnd, loggedIn }, containment, 250);
    expect(reporter.wantsLogins).toBe(true);
    reporter.loggedIn('alice');
    reporter.loggedIn('bob', performance.now() - 2_000);
    expect(logins).toEqual([
      ['alice', true],
      ['bob', false],
    ]);
  });

  it('is told to nobody where the listener does not want them', () => {
    const { reporter, faults } = reporting();
    expect(reporter.wantsLogins).toBe(false);
    reporter.loggedIn('alice');
    expect(faults).toEqual([]);
  });

  it('is a fault, and no error, where the listener throws', () => {
    const faults: string[] = [];
    const loggedIn = (): never => {
      throw new RangeError('of the app');
    };
    const noting = new Containment((where) => faults.push(where));
    new EndReporter({ onSessionEnd, loggedIn }, noting, 250).loggedIn('alice');
    expect(faults).toEqual(['loggedIn']);
  });
});
