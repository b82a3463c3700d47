import { describe, expect, it } from '@jest/globals';
import * as nestCommon from '@nestjs/common';
import * as csvParse from 'csv-parse';
import * as nodeStream from 'node:stream';
import { Readable } from 'node:stream';
import { uidItems } from 'nestjs-debate-space/erasure/uid-source';
import { runRecipe } from 'debate-space-fixtures/docs-snippets.js';
import { errorOf } from 'debate-space-fixtures/service-clients.js';
import { Failure } from './failure.js';
import type { UidFormat } from './uid-format.js';
import { uidsOf } from './uid-list.js';
import { uidRows } from './uid-list.js';

type UidsOf = (file: Readable, column?: string) => AsyncIterable<string>;
const recipe = runRecipe('uids-of-file.ts', {
  '@nestjs/common': nestCommon,
  'csv-parse': csvParse,
  'node:stream': nodeStream,
}) as Readonly<Record<'uidsOfCsv' | 'uidsOfNdjson' | 'linesOf', UidsOf>>;
const recipeByFormat = { csv: recipe.uidsOfCsv, ndjson: recipe.uidsOfNdjson, lines: recipe.linesOf };

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** What `requestMany` takes from the recipe. */
async function ofRecipe(file: Readable, format: UidFormat, column?: string): Promise<string[]> {
  const items = await all(uidItems(recipeByFormat[format](file, column)));
  return items.map(({ uid, problem }) => {
    if (problem !== undefined) throw new nestCommon.BadRequestException(problem);
    return uid;
  });
}

const readers: readonly (readonly [string, typeof ofRecipe, object])[] = [
  ['the recipe', ofRecipe, { status: 400 }],
  [
    'the command line',
    (file, format, column) => all(uidsOf(uidRows(file, format, column))),
    { exitCode: 2, constructor: Failure },
  ],
];

function inPieces(bytes: Buffer, size: number): Readable {
  const count = Math.ceil(bytes.length / size);
  const pieces = Array.from({ length: count }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
  return Readable.from(pieces, { objectMode: false });
}

const MARK = '\uFEFF';
const latin = (text: string): Buffer => Buffer.from(text, 'latin1');
const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
const SECRET = 'mallory';
const LONG = 'x'.repeat(1_100_000);

/** The uids of a file, or the words with which it is refused. */
type File = readonly [
  what: string,
  text: string | Buffer,
  outcome: readonly string[] | string,
  column?: string,
];

const csv: readonly File[] = [
  ['as RFC 4180 has it', 'name,uid\nA,ada\n"B, ""b""","b,en"\n,Zoë\n', ['ada', 'b,en', 'Zoë']],
  ['with a byte order mark', `${MARK}uid,name\nada,A\n`, ['ada']],
  ['with a byte order mark before a quoted name', `${MARK}"uid","name"\n"ada","A"\n`, ['ada']],
  ['with CRLF', 'name,uid\r\nA,ada\r\nB,ben\r\n', ['ada', 'ben']],
  ['with lone CR', 'name,uid\rA,ada\rB,ben\r', ['ada', 'ben']],
  ['with both line ends, joined of two', 'uid\r\nada\nben\r\ncleo\r', ['ada', 'ben', 'cleo']],
  ['without a line end at its end', 'uid\nada\nben', ['ada', 'ben']],
  ['with a line break in quotes', 'name,uid\r\n"A\r\nB",ada\r\nC,ben\r\n', ['ada', 'ben']],
  ['with a line break in a quoted uid', 'uid\n"ada\nben"\n', 'uid'],
  ['with a line break in its header row', '"full\nname",uid\nA,ada\n', ['ada']],
  ['with empty rows', '\n\nuid,name\n\nada,A\n \t\n,\nben,B\n\n', ['ada', 'ben']],
  [
    'with the empty rows of Excel',
    'uid,name,x,\r\nada,A,1,\r\n,,,\r\n,,\r\nben,B,2,\r\n,,,\r\n',
    ['ada', 'ben'],
  ],
  ['of a join', 'id,name,id,total\n7,A,21,5\n8,B,22,6\n', 'the header row has 2 columns "id"', 'id'],
  ['of a join, with another column twice', 'id,name,name\n7,A,X\n', ['7'], 'id'],
  ['with the column three times', 'uid,uid,uid\n1,2,3\n', 'the header row has 3 columns "uid"'],
  ['without the column', 'id,name\nada,A\n', 'the header row has no column "uid"'],
  ['without the column that is named', 'uid,name\nada,A\n', 'the header row has no column "id"', 'id'],
  ['without a header row', `${SECRET}\nben\n`, 'the header row has no column "uid"'],
  ['with a header row in capitals', 'UID,name\nada,A\n', 'the header row has no column "uid"'],
  ['with a blank after the name', 'uid ,name\nada,A\n', 'the header row has no column "uid"'],
  ['with a blank before the name', 'name, uid\nA,ada\n', 'the header row has no column "uid"'],
  ['with a name of blanks that is given', 'name, uid\nA,ada\n', ['ada'], ' uid'],
  ['with an inherited name', 'name\nA\n', 'the header row has no column "constructor"', 'constructor'],
  ['in cp1252, with plain uids', latin('uid,name\nada,Zo\xeb\n'), ['ada']],
  ['in cp1252', latin(`uid,name\nada,A\nZo\xeb,${SECRET}\n`), 'row 3: the uid is not in UTF-8'],
  ['converted with a loss', 'uid\nZo\uFFFD\n', 'row 2: the uid is not in UTF-8'],
  ['in UTF-16LE', utf16('uid,name\r\nada,A\r\n'), 'it is in UTF-16'],
  ['in UTF-16LE, with its mark', utf16(`${MARK}"uid","name"\r\nada,A\r\n`), 'it is in UTF-16'],
  ['in UTF-16BE', utf16('uid,name\nada,A\n').swap16(), 'it is in UTF-16'],
  ['in UTF-16BE, with its mark', utf16(`${MARK}uid,name\nada,A\n`).swap16(), 'it is in UTF-16'],
  [
    'that is a workbook',
    Buffer.from('PK\x03\x04\x14\0\x06\0uid\nada\n', 'latin1'),
    'it is in UTF-16, or no text',
  ],
  ['with sep=,', 'sep=,\r\nuid,name\r\nada,A\r\n', 'there is a row "sep=" above the header row'],
  [
    'with sep=; and a mark',
    `${MARK}"sep=;"\nuid;name\nada;A\n`,
    'there is a row "sep=" above the header row',
  ],
  ['with semicolons', 'uid;name\nada;A\n', 'the header row has no column "uid"'],
  ['with tabs', 'uid\tname\nada\tA\n', 'the header row has no column "uid"'],
  [
    'with a quote that is never closed',
    `uid\nada\n\n"${SECRET}\nben\n`,
    'row 4 cannot be read (CSV_QUOTE_NOT_CLOSED)',
  ],
  ['with a quote that a later one closes', 'name,uid\n"A,ada\nB",ben\n"C",x\n', ['ben', 'x']],
  ['with a quote in a cell', `uid,x\nada,1\n${SECRET}"x,1\n`, 'row 3 cannot be read (INVALID_OPENING_QUOTE)'],
  ['with text after a quote', `uid\n"${SECRET}"x\n`, 'row 2 cannot be read (CSV_INVALID_CLOSING_QUOTE)'],
  ['with a backslash before a quote', 'uid\n"a\\"b"\n', 'row 2 cannot be read (CSV_INVALID_CLOSING_QUOTE)'],
  ['with a shorter row', `uid,x\nada,1\n${SECRET}\n`, 'row 3: it does not match the header row'],
  ['with a longer row', `x,uid\n${SECRET}, x,ada\n`, 'row 2: it does not match the header row'],
  ['with a header row only', 'uid,name\n', []],
  ['without text', '', 'there is no header row'],
  ['with blanks only', `${MARK}\r\n  \r\n`, 'there is no header row'],
  ['of two with marks', `${MARK}uid,x\nada,1\n${MARK}uid,x\nben,2\n`, 'row 3: it is a header row again'],
  ['of two whose columns differ', 'uid,name\nada,A\nname,uid\nB,ben\n', 'row 3: it is a header row again'],
  ['of two, the first without its last line end', `uid\nada${MARK}uid\nben\n`, [`ada${MARK}uid`, 'ben']],
  ['with a NUL in a uid', `uid\nada\n${SECRET}\0\n`, 'the uid has control characters'],
  ['with a NUL after a quote', `uid\nada\n"${SECRET}"\0\n`, 'the uid has control characters'],
  ['with a NUL in another cell', 'uid,name\nada,A\0\n', ['ada']],
  ['with an endless row', `uid\nada\n${SECRET}${LONG}\n`, 'row 3 cannot be read (CSV_MAX_RECORD_SIZE)'],
  ['with an endless quote', `uid\nada\n"${SECRET}\n${LONG}`, 'row 3 cannot be read (CSV_MAX_RECORD_SIZE)'],
  ['with a uid twice', 'uid\nada\nada\n', ['ada', 'ada']],
  [
    'with JSON of a user',
    `uid\n"{""id"":7,""name"":""${SECRET}""}"\n`,
    'the uid is the text of a JSON object',
  ],
  ['with a row without a uid', 'uid,name\nada,A\n,B\n', 'the uid is empty'],
  [
    'with odd uids',
    `uid\n" ada "\n\u00A0ben\ncl\u200Beo\n9.0E+15\nNULL\n`,
    [' ada ', '\u00A0ben', 'cl\u200Beo', '9.0E+15', 'NULL'],
  ],
];

const ndjson: readonly File[] = [
  ['as it is', '{"name":"A","uid":"ada"}\n"ben"\n\n  {"uid":"Zo\\u00eb"}', ['ada', 'ben', 'Zoë']],
  ['with a byte order mark and CRLF', `${MARK}{"uid":"ada"}\r\n\r\n{"uid":"ben"}\r\n`, ['ada', 'ben']],
  ['with the member of another name', '{"id":"ada","uid":"x"}\n', ['ada'], 'id'],
  [
    'with the member in another object as well',
    '{"boss":{"uid":"x"},"a":["\\"uid\\":"],"uid":"ada"}\n',
    ['ada'],
  ],
  ['without the member', `"ada"\n{"id":"${SECRET}"}\n`, 'row 2: it has no uid'],
  ['with whole numbers', '{"uid":42}\n7\n', ['42', '7']],
  ['with a number that JavaScript rounds', '{"uid":9007199254740993}\n', 'the uid is a number beyond'],
  ['with an inherited member', '{}\n', 'row 1: it has no constructor', 'constructor'],
  ['with half a line', `"ada"\n\n{"uid":"${SECRET}`, 'row 3: it is not JSON'],
  ['that is an array', `[{"uid":"${SECRET}"}]\n`, 'the uid must be a string'],
  ['with half a surrogate pair', '"\\ud83d"\n', 'the uid has a lone surrogate'],
  ['with an empty uid', '"ada"\n""\n', 'the uid is empty'],
  ['in cp1252', latin('"ada"\n{"name":"\xeb","uid":"ben"}\n"Zo\xeb"\n'), 'row 3: the uid is not in UTF-8'],
  ['in UTF-16LE', utf16('{"uid":"ada"}\n'), 'it is in UTF-16'],
  ['without text', '\n\n', []],
];

const lines: readonly File[] = [
  ['as it is', 'ada\nb,en\n\n Zoë "x"', ['ada', 'b,en', ' Zoë "x"']],
  ['with a byte order mark and CRLF', `${MARK}ada\r\n\r\nben\r\n`, ['ada', 'ben']],
  ['with lone CR', 'ada\rben\r', ['ada', 'ben']],
  ['of two with marks', `${MARK}ada\n${MARK}ben\n`, ['ada', `${MARK}ben`]],
  ['that is NDJSON', `{"uid":"${SECRET}"}\n`, 'the uid is the text of a JSON object'],
  ['with a dot segment', 'ada\n\n..\n', 'the uid has a dot segment'],
  ['with a NUL', `ada\n${SECRET}\0\n`, 'the uid has control characters'],
  ['in cp1252', latin('ada\nZo\xeb\n'), 'row 2: the uid is not in UTF-8'],
  [
    'that ends in the middle of a character',
    Buffer.from('ada\nZoë').subarray(0, -1),
    'row 2: the uid is not in UTF-8',
  ],
  ['in UTF-16LE, with its mark', utf16(`${MARK}ada\nben\n`), 'it is in UTF-16'],
  ['in UTF-16BE', utf16('ada\nben\n').swap16(), 'it is in UTF-16'],
  ['with an endless line', `ada\n${SECRET}${LONG}`, 'row 2 cannot be read (CSV_MAX_RECORD_SIZE)'],
  ['without text', `${MARK}\n \n`, []],
];

const files = Object.entries({ csv, ndjson, lines }).flatMap(([format, each]) =>
  each.map(([what, text, outcome, column]) => ({
    format: format as UidFormat,
    what,
    bytes: Buffer.from(text),
    outcome,
    column,
  })),
);

describe.each(readers)('%s', (_name, read, refusal) => {
  it.each(files)('reads, or refuses, a list in $format $what', async ({ format, bytes, outcome, column }) => {
    for (const size of bytes.length < 1000 ? [1, 7, 1000] : [64 * 1024]) {
      const file = inPieces(bytes, size);
      if (typeof outcome !== 'string') {
        expect(await read(file, format, column)).toEqual(outcome);
        continue;
      }
      const error = await errorOf(read(file, format, column));
      expect(error).toMatchObject({ ...refusal, message: expect.stringContaining(outcome) });
      const { stack, cause } = error as Error;
      expect(JSON.stringify([error, stack, cause])).not.toContain(SECRET);
      expect(file.destroyed).toBe(true);
    }
  });
});
