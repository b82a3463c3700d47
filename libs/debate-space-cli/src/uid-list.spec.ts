import { beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { readUids, type UidListOptions } from './uid-list.js';
import { Scene } from './testing/command-line.js';

const scene = new Scene([]);
const { signal } = new AbortController();
let stdin: Readable;
beforeEach(() => {
  stdin = new PassThrough();
});

const read = (options: UidListOptions) =>
  readUids(options, { folder: scene.folder, stdin, interrupted: signal });
const linesOf = async (options: UidListOptions) => Object.fromEntries(await read(options));

describe('a list of uids', () => {
  it('has the uids of the command line, each once', async () => {
    expect(await linesOf({ uids: ['ada', 'ben', 'ada'] })).toEqual({ ada: 1, ben: 2 });
  });

  it.each([
    ['a text', 'users.txt', 'ada\n\n  \r\nben\rada', { ada: 1, ben: 4 }],
    ['a text with a byte order mark', 'users.TXT', '\uFEFFada\nben\nada', { ada: 1, ben: 2 }],
    ['a CSV', 'users.csv', 'name,uid\nA,ada\n,\n"B,\nb",ben\nA,ada\n', { ada: 2, ben: 5 }],
    ['NDJSON', 'users.ndjson', '{"uid":"ada","n":1}\n\n{"uid":7}\r\n{"uid":"ada"}', { ada: 1, 7: 3 }],
    ['a CSV with a byte order mark', 'users.csv', '\uFEFFuid\r\nada\r\nben\r\nada\r\n', { ada: 2, ben: 3 }],
  ])('reads %s, without empty lines and duplicates', async (_, file, text, uids) => {
    await scene.write(file, text);
    expect(await linesOf({ file })).toEqual(uids);
  });

  it('has the column of a CSV that is named', async () => {
    await scene.write('users', 'uid,id\nx,ada\n');
    expect(await linesOf({ file: 'users', format: 'csv', column: 'id' })).toEqual({ ada: 2 });
  });

  it('comes from stdin, or from a pipe', async () => {
    stdin = Readable.from([Buffer.from('ada\nb'), Buffer.from('en\n')]);
    expect(await linesOf({ file: '-', format: 'lines' })).toEqual({ ada: 1, ben: 2 });
    const pipe = join(scene.folder, 'users.txt');
    await promisify(execFile)('mkfifo', [pipe]);
    const [piped] = await Promise.all([linesOf({ file: 'users.txt' }), writeFile(pipe, 'cleo\n')]);
    expect(piped).toEqual({ cleo: 1 });
  });

  it('is refused with the line of each value that cannot be a uid, and without what is in it', async () => {
    await scene.write('users.csv', 'uid,name\nada,A\n..,secret\n,secret\nundefined,secret\n');
    const refused = await read({ file: 'users.csv' }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ exitCode: 2 });
    expect(String(refused)).toMatch(
      /users\.csv: line 3: the uid has a dot segment\n.*line 4: it has no uid.*\n.*line 5: the uid is the text of/,
    );
    expect(String(refused)).not.toContain('secret');
  });

  it('names the first twenty of many such lines', async () => {
    await scene.write('users.txt', '..\n'.repeat(25));
    const end = 'line 20: the uid has a dot segment\n… and 5 more';
    await expect(read({ file: 'users.txt' })).rejects.toThrow(end);
  });

  it.each([
    ['nothing', 'users.txt', '', 'users.txt has no uids'],
    ['nothing but a header', 'users.csv', 'uid\n', 'users.csv has no uids'],
    ['no header', 'users.csv', '', 'the header has no column "uid" (columns: 0)'],
    ['another column', 'users.csv', 'id,name\nada,A\n', 'the header has no column "uid" (columns: 2)'],
    ['semicolons', 'users.csv', 'uid;name\nada;A\n', 'separate columns with commas'],
    ['the column twice', 'users.csv', 'uid,uid\nada,ben\n', 'the header has 2 column "uid"'],
    ['a row of another length', 'users.csv', 'uid,name\nada\n', 'line 2 cannot be read (CSV_'],
    [
      'a broken quote',
      'users.csv',
      'uid\nada\n"ben"x\n',
      'line 3 cannot be read (CSV_INVALID_CLOSING_QUOTE)',
    ],
    [
      'a rounded number',
      'users.txt',
      '12e34\n9.0E+15\n',
      'line 2: the uid is a number that a spreadsheet has',
    ],
    ['the text of an object', 'users.txt', '{"uid":"ada"}\n', 'line 1: the uid is the text of a JSON object'],
    [
      'a line that is too long',
      'users.txt',
      `ada\n${'"'.repeat(1_000_000)}\n`,
      'line 2: the uid is longer than',
    ],
    [
      'a long line in Base64',
      'users.txt',
      `eyJ${'Ii'.repeat(500_000)}`,
      'line 1: the uid is longer than 1,024',
    ],
    ['a line that is no JSON', 'users.ndjson', '{"uid":"ada"}\nsecret\n', 'line 2 is not a JSON object'],
    ['an array of JSON', 'users.jsonl', '["ada"]', 'line 1 is not a JSON object'],
    ['an anonymized user', 'users.ndjson', '{"uid":null}', 'line 1: it has no uid'],
    ['a number that JavaScript rounds', 'users.ndjson', '{"uid":9007199254740993}', 'beyond 2^53 - 1'],
    [
      'a spreadsheet',
      'users.xlsx',
      'ada',
      'The format of users.xlsx is unknown: add --format csv|lines|ndjson',
    ],
  ])('is refused when there is %s', async (_what, file, text, problem) => {
    await scene.write(file, text);
    const refusal = { exitCode: 2, message: expect.stringContaining(problem) };
    await expect(read({ file })).rejects.toMatchObject(refusal);
  });

  it('is refused when it is not in UTF-8, and when the file is not there', async () => {
    await scene.write('users.txt', Buffer.from('\uFEFFada', 'utf16le'));
    await expect(read({ file: 'users.txt' })).rejects.toThrow('it is not in UTF-8');
    const missing = { exitCode: 1, message: 'none.txt cannot be read (ENOENT).' };
    await expect(read({ file: 'none.txt' })).rejects.toMatchObject(missing);
  });
});
