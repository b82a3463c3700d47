import { beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import type { DebateSpaceUser } from 'nestjs-debate-space';
import { readdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { readUids } from './uid-list.js';
import { usersText, writeNewFile, type ExportOptions } from './users-export.js';
import { Scene } from './testing/command-line.js';

async function piecesOf(users: readonly DebateSpaceUser[], options: ExportOptions): Promise<string[]> {
  return Readable.from(usersText(Readable.from(users), options)).toArray() as Promise<string[]>;
}
const csv = async (users: readonly DebateSpaceUser[], columns?: readonly string[]): Promise<string> =>
  (await piecesOf(users, { format: 'csv', ...(columns && { columns }) })).join('');
const cells = async (...from: Parameters<typeof csv>): Promise<string[][]> => parse(await csv(...from));
const listed = (count: number): DebateSpaceUser[] =>
  Array.from({ length: count }, (_, n) => ({ uid: `u-${n}` }));
const named = ['uid', 'full_name', 'first_name', 'last_name', 'email', 'image_url', 'created_at'];

describe('users as CSV', () => {
  it('have the named fields, then further ones of the first hundred, then what came only later', async () => {
    const later = { uid: 'cleo', city: 'Y', badges: [1], more: 'm' };
    const rows = await cells([{ score: 7, uid: 'ada', email: 'a@b' }, ...listed(99), later]);
    expect(rows[0]).toEqual([...named, 'score', 'more']);
    expect(rows[1]).toEqual(['ada', '', '', '', 'a@b', '', '', '7', '']);
    expect(rows.at(-1)?.at(-1)).toBe('{"city":"Y","badges":[1],"more":"m"}');
    expect(rows).toHaveLength(102);
  });

  it('have the requested columns, and no others', async () => {
    const columns = ['email', 'uid', 'toString', 'a.b'];
    const users = [{ uid: 'ada', email: 'a@b', 'a.b': 'x', a: { b: 'y' } }];
    expect(await cells(users, columns)).toEqual([columns, ['a@b', 'ada', '', 'x']]);
  });

  it('have one header row, also when there are no users', async () => {
    expect(await csv([])).toBe(`${named.join(',')},more\n`);
    expect(await csv([], ['uid'])).toBe('uid\n');
    const uids = listed(201).map(({ uid }) => `${uid}\n`);
    expect(await csv(listed(201), ['uid'])).toBe(`uid\n${uids.join('')}`);
  });

  it('keep values of every kind', async () => {
    const string = 'a,"b"\r\nc; Zoë 🦊';
    const user = { string, none: null, no: false, zero: 0, below: -1.5, list: ['a', { b: 1 }] };
    const [, row = []] = await cells([user], Object.keys(user));
    expect(row).toEqual([string, '', 'false', '0', '-1.5', '["a",{"b":1}]']);
  });

  it.each(['=', '+', '-', '@', '\t', '\r', '\n', '\0', '＝', '＋', '－', '＠'])(
    'have no formula that begins with %j in a cell or in the header row',
    async (first) => {
      const formula = `${first}1+1`;
      const [header, row] = await cells([{ uid: formula, [formula]: `a${formula}` }]);
      expect([header?.[7], row?.[0], row?.[7]]).toEqual([`'${formula}`, `'${formula}`, `a${formula}`]);
    },
  );
});

describe('an exported list', () => {
  const scene = new Scene([]);
  const formulas = ['=cmd', '+48123', '-1', '@bob', '＝1', "'@bob", "''=x", "'ada", "'"];
  const odd = [' ada ', 'a"b', 'a,b', 'a;b', '"', '007', 'Zoë 🦊', '\uFEFFada', 'a\u2028b', '\\N'];
  const uids = [...formulas, ...odd];

  it.each(['csv', 'ndjson'] as const)('is read back with the very uids, as %s', async (format) => {
    const users = uids.map((uid) => ({ uid, '=bio': `=1+1\r\n"${uid}"\r` }));
    await scene.write(`users.${format}`, (await piecesOf(users, { format })).join(''));
    const interrupted = new AbortController().signal;
    const source = { folder: scene.folder, stdin: Readable.from([]), interrupted };
    const read = await readUids({ file: `users.${format}` }, source);
    expect([...read.keys()]).toEqual(uids);
    const column = readUids({ file: `users.${format}`, column: '=bio' }, source);
    await expect(column).rejects.toThrow('has control characters'); // the column was found
  });
});

describe('the text of users', () => {
  it.each([
    ['ndjson', '{"score":1,"uid":"ada"}\n'],
    ['csv', 'score,uid,toString\n1,ada,\n'],
  ] as const)('has the requested columns in their order, in %s', async (format, text) => {
    const columns = ['score', 'uid', 'toString'];
    expect(await piecesOf([{ uid: 'ada', score: 1, name: 'A' }], { format, columns })).toEqual([text]);
  });

  it('comes a hundred users at a time', async () => {
    expect(await piecesOf(listed(250), { format: 'ndjson' })).toHaveLength(3);
  });
});

describe('a new file', () => {
  const scene = new Scene([]);
  let path: string;
  beforeEach(() => {
    path = join(scene.folder, 'users.csv');
  });

  it('has its name when it is complete, and belongs to its owner only', async () => {
    await writeNewFile(path, async (file) => {
      expect(await readdir(scene.folder)).toEqual([expect.stringMatching(/^\.debate-space-/)]);
      await file.writeFile('uid\nada\n');
    });
    expect(await readFile(path, 'utf8')).toBe('uid\nada\n');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(scene.folder)).toEqual(['users.csv']);
  });

  it('disappears when writing fails', async () => {
    const failing = writeNewFile(path, () => Promise.reject(new Error('the service fails')));
    await expect(failing).rejects.toThrow('the service fails');
    expect(await readdir(scene.folder)).toEqual([]);
  });

  it('does not replace a file that gets the name meanwhile, or a link that leads nowhere', async () => {
    const late = writeNewFile(path, () => scene.write('users.csv', 'of somebody else'));
    await expect(late).rejects.toThrow('users.csv exists; name another file.');
    expect(await readFile(path, 'utf8')).toBe('of somebody else');
    await symlink(join(scene.folder, 'missing'), `${path}.2`);
    await expect(writeNewFile(`${path}.2`, () => Promise.resolve())).rejects.toThrow('users.csv.2 exists');
    expect(await readdir(scene.folder)).toEqual(['users.csv', 'users.csv.2']);
  });
});
