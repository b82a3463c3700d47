import { describe, expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { errorOf } from 'debate-space-fixtures/service-clients.js';
import { Failure } from './failure.js';
import { uidsOf } from './uid-list.js';
import { UID_FORMATS, type UidFormat } from './uid-format.js';
import { uidRows } from './uid-text.js';

type Text = AsyncIterable<string | Uint8Array>;

async function uids(text: Text, format: UidFormat, column?: string): Promise<string[]> {
  return all(uidsOf(uidRows(text, format, column)));
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** Bytes in pieces of this size. */
function bytes(text: string, size = 7): Readable {
  const whole = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, n) =>
    whole.subarray(n * size, (n + 1) * size),
  );
  return Readable.from(pieces, { objectMode: false });
}

/** Gives what it has, and then nothing, without an end; as an upload that hangs. */
function hanging(text: string): Readable {
  const stream = new Readable({ read: () => undefined });
  stream.push(text);
  return stream;
}

describe('a list of uids', () => {
  const texts: Record<UidFormat, string> = {
    csv: 'name,uid\nA,ada\n"B, ""b""",ben\n\n,Zoë\n',
    ndjson: '{"name":"A","uid":"ada"}\n"ben"\n\n  {"uid":"Zo\\u00eb"}\n',
    lines: 'ada\nben\n\nZoë\n',
  };
  const given: [string, (text: string) => Text][] = [
    ['a stream of bytes', (text) => bytes(text)],
    ['a stream of single bytes', (text) => bytes(text, 1)],
    ['a stream of text', (text) => bytes(text, 100).setEncoding('utf8')],
    ['an async iterable of bytes', (text) => Readable.from([new TextEncoder().encode(text)])],
    ['with a byte order mark', (text) => bytes(`\uFEFF${text}`)],
    ['with the line ends of Windows', (text) => bytes(text.replaceAll('\n', '\r\n'), 1)],
    ['without a line end at its end', (text) => bytes(text.trimEnd())],
  ];
  it.each(given.flatMap((one) => UID_FORMATS.map((format) => [format, ...one] as const)))(
    'may be %s, %s',
    async (format, _what, source) => {
      const rows = await all(uidRows(source(texts[format]), format));
      expect(rows.map(({ uid }) => uid)).toEqual(['ada', 'ben', 'Zoë']);
      expect(rows.at(-1)?.row).toBe(format === 'csv' ? 5 : 4);
    },
  );

  it('takes the column that is named', async () => {
    expect(await uids(bytes('id;x,uid\nada,1\n'), 'csv', 'id;x')).toEqual(['ada']);
    expect(await uids(bytes('{"id":"ada","uid":1}'), 'ndjson', 'id')).toEqual(['ada']);
  });

  it('takes a number of JSON for its digits', async () => {
    expect(await uids(bytes('{"uid":42}\n7'), 'ndjson')).toEqual(['42', '7']);
  });

  it('keeps every character of a uid', async () => {
    const odd = [' ada ', "'=1+1", 'a,b', 'a"b', 'a\u2028b', '"', '🦊', '\\', '-1'];
    expect(await uids(bytes(odd.join('\n'), 1), 'lines')).toEqual(odd);
    const json = odd.map((uid) => JSON.stringify(uid)).join('\n');
    expect(await uids(bytes(json, 1), 'ndjson')).toEqual(odd);
    const csv = ['uid', ...odd.map((uid) => `"${uid.replaceAll('"', '""')}"`)].join('\n');
    expect(await uids(bytes(csv, 1), 'csv')).toEqual(odd);
  });

  it('has no uids when its text has none', async () => {
    expect(await uids(bytes(''), 'lines')).toEqual([]);
    expect(await uids(bytes('\n\n'), 'ndjson')).toEqual([]);
    expect(await uids(bytes('uid\n'), 'csv')).toEqual([]);
  });
});

describe('a list of uids is refused', () => {
  const SECRET = 'mallory';
  it.each<[string, string | Text, UidFormat, string]>([
    ['an empty uid', '"ada"\n""', 'ndjson', 'row 2: the uid is empty'],
    ['a dot segment', 'ada\n\n..\n', 'lines', 'row 3: the uid has a dot segment'],
    ['a null character', `${SECRET}\0ben\n`, 'lines', 'row 1: the uid has control characters'],
    [
      'another encoding',
      Readable.from([Buffer.from('ada\nZo\xeb', 'latin1')]),
      'lines',
      'row 2: the uid is not in UTF-8',
    ],
    ['half a line of JSON', `"ada"\n{"uid":"${SECRET}`, 'ndjson', 'row 2: it is not JSON'],
    [
      'a number that JavaScript rounds',
      '{"uid":9007199254740993}',
      'ndjson',
      'row 1: the uid is a number beyond',
    ],
    [
      'JSON of a user',
      `uid\n"{""id"":7,""name"":""${SECRET}""}"`,
      'csv',
      'row 2: the uid is the text of a JSON object',
    ],
    ['NDJSON read as lines', `{"uid":"${SECRET}"}`, 'lines', 'row 1: the uid is the text of a JSON object'],
    ['another kind of JSON', `["${SECRET}"]`, 'ndjson', 'row 1: the uid must be a string'],
    ['an object without the member', `{"id":"${SECRET}"}`, 'ndjson', 'row 1: it has no uid'],
    ['an inherited member', '{}', 'ndjson', 'row 1: it has no uid'],
    ['half a surrogate pair', '"\\ud83d"', 'ndjson', 'row 1: the uid has a lone surrogate'],
    ['no header row', '', 'csv', 'there is no header row'],
    ['no such column', `${SECRET},x,y\n1,2,3\n`, 'csv', 'the header row has no column "uid" (columns: 3)'],
    ['the column twice', 'uid,x,uid\n1,2,3\n', 'csv', 'the header row has 2 columns "uid"'],
    [
      'a row of another length',
      `uid,x\nada,1\n${SECRET}\n`,
      'csv',
      'row 3: it does not match the header row (cells: 1, there: 2)',
    ],
    [
      'a shifted row',
      `x,uid\n${SECRET}, x,ada\n`,
      'csv',
      'row 2: it does not match the header row (cells: 3, there: 2)',
    ],
    ['an empty cell', 'uid,x\n,1\n', 'csv', 'row 2: the uid is empty'],
    [
      'a quote in the middle',
      `uid,x\nada,1\n${SECRET}"x,1\n`,
      'csv',
      'row 3 cannot be read (INVALID_OPENING_QUOTE)',
    ],
    ['text after a quote', `uid\n"${SECRET}"x\n`, 'csv', 'row 2 cannot be read (CSV_INVALID_CLOSING_QUOTE)'],
    [
      'a quote that is never closed',
      `uid\nada\n\n"${SECRET}\nben\n`,
      'csv',
      'row 4 cannot be read (CSV_QUOTE_NOT_CLOSED)',
    ],
    [
      'an endless row',
      `uid\n"${SECRET}${'x'.repeat(1_100_000)}`,
      'csv',
      'row 2 cannot be read (CSV_MAX_RECORD_SIZE)',
    ],
    [
      'an endless line',
      `ada\n${SECRET}${'x'.repeat(1_100_000)}`,
      'lines',
      'row 2 cannot be read (CSV_MAX_RECORD_SIZE)',
    ],
  ])('for %s, without a value', async (_what, content, format, problem) => {
    const source = typeof content === 'string' ? bytes(content, 1000) : content;
    const error = await errorOf(uids(source, format));
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({ exitCode: 2 });
    expect((error as Error).message).toContain(problem);
    expect(JSON.stringify([error, (error as Error).stack, (error as Error).cause])).not.toContain(SECRET);
    if (source instanceof Readable) expect(source.destroyed).toBe(true);
  });
});

describe('reading a list row by row', () => {
  it('comes to every row before the one that cannot be read', async () => {
    const seen: unknown[] = [];
    const reading = async () => {
      for await (const row of uidRows(bytes('uid\nada\n.\nben\nx"\ncleo', 100), 'csv')) seen.push(row);
    };
    await expect(reading()).rejects.toThrow('row 5 cannot be read');
    expect(seen).toMatchObject([{ uid: 'ada' }, { row: 3 }, { uid: 'ben' }]);
  });

  it('goes on after rows that have no usable uid', async () => {
    const text = 'uid,x\nada,1\n.,1\nben\n\nZo\uFFFD,1\ncleo,1\n';
    expect(await all(uidRows(bytes(text), 'csv'))).toEqual([
      { row: 2, uid: 'ada' },
      { row: 3, problem: 'the uid has a dot segment' },
      { row: 4, problem: 'it does not match the header row (cells: 1, there: 2)' },
      { row: 6, problem: 'the uid is not in UTF-8' },
      { row: 7, uid: 'cleo' },
    ]);
    const lines = '"ada"\n{\n"ben"';
    expect(await all(uidRows(bytes(lines), 'ndjson'))).toEqual([
      { row: 1, uid: 'ada' },
      { row: 2, problem: 'it is not JSON' },
      { row: 3, uid: 'ben' },
    ]);
  });
});

describe('the stream of a list', () => {
  it('is read no further than it is requested', async () => {
    let given = 0;
    const endless = Readable.from(
      (function* () {
        for (;;) yield `user-${(given += 1)}\n`.repeat(1000);
      })(),
      { objectMode: false },
    );
    const reading = uidRows(endless, 'lines');
    for (let n = 0; n < 5000; n += 1) await reading.next();
    expect(given).toBeLessThan(40);
    await reading.return(undefined);
    expect(endless.destroyed).toBe(true);
  });

  it('is destroyed when the loop is left, even while it hangs', async () => {
    const upload = hanging('ada\nben\ncleo\n');
    const closed = new Promise((resolve) => upload.once('close', resolve));
    for await (const { uid } of uidRows(upload, 'lines')) if (uid === 'ben') break;
    await closed;
  });

  it('is destroyed when a row is refused, with an error that shows nothing of the row', async () => {
    const upload = hanging('uid\nada\n"ben"x\n\n');
    const closed = new Promise((resolve) => upload.once('close', resolve));
    await expect(uids(upload, 'csv')).rejects.toThrow('row 3');
    await closed;
    expect(String(upload.errored)).not.toContain('ben');
  });

  it('fails with its own error', async () => {
    const upload = hanging('ada\nben\n');
    const reading = uids(upload, 'lines');
    const broken = new Error('the connection broke');
    upload.destroy(broken);
    await expect(reading).rejects.toBe(broken);
  });
});
