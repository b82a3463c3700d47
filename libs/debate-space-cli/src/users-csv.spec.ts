import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import type { DebateSpaceUser } from 'nestjs-debate-space';
import { csvOf } from './users-export.js';

type Page = readonly DebateSpaceUser[];

async function csv(pages: readonly Page[], columns?: readonly string[]): Promise<string> {
  let text = '';
  for await (const page of csvOf(each(pages), columns)) text += page;
  return text;
}

async function* each(pages: readonly Page[]): AsyncGenerator<Page> {
  for (const page of pages) yield await Promise.resolve(page);
}

const cells = async (...from: Parameters<typeof csv>): Promise<string[][]> => parse(await csv(...from));
const named = ['uid', 'full_name', 'first_name', 'last_name', 'email', 'image_url', 'created_at'];

describe('users as CSV', () => {
  it('have the named fields, then further ones of the first page, then what came only later', async () => {
    const rows = await cells([
      [
        { score: 7, uid: 'ada', email: 'a@b' },
        { uid: 'ben', city: 'X' },
      ],
      [{ uid: 'cleo', city: 'Y', badges: [1], more: 'm' }],
    ]);
    expect(rows).toEqual([
      [...named, 'score', 'city', 'more'],
      ['ada', '', '', '', 'a@b', '', '', '7', '', ''],
      ['ben', '', '', '', '', '', '', '', 'X', ''],
      ['cleo', '', '', '', '', '', '', '', 'Y', '{"badges":[1],"more":"m"}'],
    ]);
  });

  it('have a field called more in the last column', async () => {
    const [header, row] = await cells([[{ uid: 'ada', more: 'm' }]]);
    expect([header?.slice(-2), row?.slice(-2)]).toEqual([
      ['created_at', 'more'],
      ['', '{"more":"m"}'],
    ]);
  });

  it('have the requested columns, and no others', async () => {
    const columns = ['email', 'uid', 'toString', 'a.b'];
    const users = [{ uid: 'ada', email: 'a@b', 'a.b': 'x', a: { b: 'y' } }];
    expect(await cells([users], columns)).toEqual([columns, ['a@b', 'ada', '', 'x']]);
  });

  it('have a header row when there are no users', async () => {
    expect(await csv([])).toBe(`${named.join(',')},more\n`);
    expect(await csv([], ['uid'])).toBe('uid\n');
  });

  it('have one header row over all pages', async () => {
    expect(await csv([[{ uid: 'ada' }], [{ uid: 'ben' }]], ['uid'])).toBe('uid\nada\nben\n');
  });

  it('keep values of every kind', async () => {
    const user = {
      string: 'a,"b"\r\nc; Zoë 🦊',
      empty: '',
      none: null,
      no: false,
      yes: true,
      zero: 0,
      below: -1.5,
      list: ['a', { b: 1 }],
      object: { a: '=1' },
    };
    const [, row = []] = await cells([[user]], Object.keys(user));
    expect(row).toEqual([user.string, '', '', 'false', 'true', '0', '-1.5', '["a",{"b":1}]', '{"a":"=1"}']);
  });

  const formulas = ['=', '+', '-', '@', '\t', '\r', '\n', '\0', '＝', '＋', '－', '＠'].map((c) => `${c}1+1`);
  it.each(formulas.map((formula) => [formula]))('have no formula %j in a cell', async (formula) => {
    const [, row] = await cells([[{ uid: formula, email: `${formula},"x"`, extra: `a${formula}` }]]);
    expect(row?.[0]).toBe(`'${formula}`);
    expect(row?.[4]).toBe(`'${formula},"x"`);
    expect(row?.[7]).toBe(`a${formula}`); // not at its beginning
  });

  it.each(formulas.map((formula) => [formula]))('have no formula %j in the header row', async (formula) => {
    const [header] = await cells([[{ [formula]: 1, [`${formula},"x"`]: 1 }]]);
    expect(header?.slice(7, 9)).toEqual([`'${formula}`, `'${formula},"x"`]);
    expect(await cells([], [formula])).toEqual([[`'${formula}`]]);
  });

  it('have no formula in what came only later', async () => {
    const [, , row] = await cells([[{ uid: 'ada' }], [{ uid: 'ben', '=1+1': '=1+1' }]]);
    expect(row?.at(-1)).toBe('{"=1+1":"=1+1"}');
  });
});
