import { describe, expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { UID_FORMATS, type UidFormat } from './uid-format.js';
import { uidRows, uidsOf } from './uid-list.js';

async function uids(text: AsyncIterable<Uint8Array>, format: UidFormat): Promise<string[]> {
  return all(uidsOf(uidRows(text, format)));
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
  it.each(UID_FORMATS)('keeps every character of a uid, and counts rows from 1, in %s', async (format) => {
    const odd = [' ada ', "'=1+1", 'a,b', 'a"b', 'a\u2028b', '"', '🦊', '\\', '-1'];
    const texts: Record<UidFormat, string[]> = {
      csv: ['uid', ...odd.map((uid) => `"${uid.replaceAll('"', '""')}"`)],
      ndjson: odd.map((uid) => JSON.stringify(uid)),
      lines: odd,
    };
    const rows = await all(uidRows(bytes(texts[format].join('\n'), 1), format));
    expect(rows.map(({ uid }) => uid)).toEqual(odd);
    expect(rows[0]?.row).toBe(format === 'csv' ? 2 : 1);
  });

  it('may be an async iterable of bytes', async () => {
    expect(await uids(Readable.from([new TextEncoder().encode('ada\nben')]), 'lines')).toEqual([
      'ada',
      'ben',
    ]);
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
        for (;;) yield Buffer.from(`user-${(given += 1)}\n`.repeat(1000));
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
