import { describe, expect, it } from '@jest/globals';
import { VERDICTS, verdictOn, type Shown, type Verdict } from './verdict.js';

type Case = readonly [
  call: 'done' | 'failed' | 'silent' | undefined,
  shown: readonly Shown[],
  verdict: Verdict,
];

const cases: readonly Case[] = [
  ['done', [], 'ended'],
  ['done', ['left'], 'ended'],
  ['done', ['reads'], 'ended'],
  ['done', ['kept'], 'ended if missing'],
  ['done', ['kept', 'reads'], 'ended if missing'],
  ['done', ['continues'], 'continued'],
  ['done', ['continues', 'reads', 'kept'], 'continued'],
  ['done', ['continues', 'left'], 'ended'],
  ['done', ['kept', 'left'], 'ended'],
  ['done', ['left', 'continues', 'kept'], 'ended'],
  ['failed', [], 'ended if surely missing'],
  ['failed', ['left'], 'ended if surely missing'],
  ['failed', ['continues'], 'ended if surely missing'],
  ['silent', [], 'ended when missing'],
  ['silent', ['left'], 'ended when missing'],
  ['silent', ['kept'], 'ended when missing'],
  ['silent', ['continues'], 'continued'],
  ['silent', ['left', 'continues'], 'ended when missing'],
  ['silent', ['left', 'kept'], 'ended'],
  [undefined, ['left'], 'ended when missing'],
];

describe('the verdict on a session', () => {
  it.each(cases)('after a call that is %s, with owners who show %j, is: %s', (call, shown, verdict) => {
    for (const order of [shown, shown.toReversed()])
      expect(verdictOn('store call', call, order)).toBe(verdict);
  });

  it.each(['done', 'failed', 'silent', undefined] as const)(
    'by its lost cookie is that of the store, after a call that is %s',
    (call) => {
      expect(verdictOn('lost cookie', call, ['left'])).toBe('ended if stored');
    },
  );

  it('of a call that names no session is that of the call', () => {
    expect(verdictOn('unnamed', 'done', [])).toBe('ended');
    expect(verdictOn('unnamed', 'silent', [])).toBe('ended');
    expect(verdictOn('unnamed', 'failed', [])).toBe('stays');
  });

  it('needs every row of the table', () => {
    const shown = cases.map(([call, owners]) => verdictOn('store call', call, owners));
    const all = new Set<Verdict>([...shown, 'ended if stored', 'stays']);
    expect(new Set(VERDICTS.map((row) => row[3]))).toEqual(all);
  });
});
