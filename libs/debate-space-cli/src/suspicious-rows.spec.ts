import { describe, expect, it } from '@jest/globals';
import { SuspiciousRowCounter, suspicionOf, suspiciousTexts } from './suspicious-rows.js';

describe('a uid', () => {
  it.each<[string, readonly string[]]>([
    ['a byte order mark, as where files were joined', ['\uFEFFada', 'ada\uFEFF', 'ada\uFEFFben']],
    [
      'an invisible character',
      ['a\u200Bda', 'ada\u200D', 'a\u00ADda', '\u2060ada', 'ada\u3164', '\u202Eada'],
    ],
    ['a blank at its start or end', [' ada', 'ada ', '\u00A0ada', 'ada\u3000', 'ada\u2028']],
    ['a blank that is no plain space', ['a\u00A0b', '9\u202F007']],
    ['a quotation mark at its start or end', ['"ada"', "'=1+1", "'4711", '„ada“', '="0042"']],
    ['a number in scientific notation', ['9.0E+15', '9,00719925474099E+15', '9.007e15', '1e+21', '-1E-5']],
    ['a number with decimals or separators', ['4711.0', '4711,00', '4,711', '1.234.567', "1'234", '1 234']],
    [
      'a word for a missing value',
      ['NULL', 'null', '(null)', '[NULL]', '<null>', 'None', 'nan', 'NaN', 'N/A', 'NA', 'nil'],
    ],
    ['a word for a missing value', ['undefined', '\\N', '-', '--', '?']],
    ['an error of a spreadsheet', ['#N/A', '#NV', '#REF!', '#BEZUG!', '#NAME?', '#DIV/0!', '####']],
    ['a formula', ['=A1']],
  ])('is suspicious as %s: %j', (reason, uids) => {
    expect(uids.map(suspicionOf)).toEqual(uids.map(() => reason));
  });

  it('is not suspicious because it is unusual', () => {
    const uids = [
      '4711',
      '0042',
      '-1',
      '12e5',
      '1E10',
      '5f3e9a',
      'a b',
      "O'Brien",
      'Zoë',
      '🦊',
      '#4711',
      'nanny',
      'nullmeyer',
    ];
    uids.push(
      'ada@example.org',
      'auth0|5f',
      'cn=ada,ou=people',
      'a,b',
      '0b1e7f9c-5f0e-4a57-8f6e-1d2c3b4a5f60',
      '1.5',
      '2026-01',
    );
    expect(uids.filter((uid) => suspicionOf(uid) !== undefined)).toEqual([]);
  });
});

it('the first 100 suspicious rows are kept, all are counted, and the text says that there are more', () => {
  const counter = new SuspiciousRowCounter();
  for (let row = 1; row <= 250; row += 1) counter.add({ row, uid: row % 2 === 0 ? 'NULL' : `u-${row}` });
  counter.add({ row: 251, problem: 'the uid is empty' });
  expect(counter.counts.suspicious).toBe(125);
  expect(counter.counts.suspiciousRows).toHaveLength(100);
  expect(suspiciousTexts(counter.counts)).toEqual([
    ['uid with a word for a missing value', expect.stringMatching(/^2, 4, .*200, …$/)],
  ]);
});
