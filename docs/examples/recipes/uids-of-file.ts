import { BadRequestException } from '@nestjs/common';
import { CsvError, parse, type Options } from 'csv-parse';
import { pipeline, type Readable } from 'node:stream';

type Cells = readonly string[];

/** CSV, separated by commas, with a header row: the uids in one column. */
export async function* uidsOfCsv(file: Readable, column = 'uid'): AsyncGenerator<string> {
  let header: Cells | undefined;
  for await (const { row, cells } of rowsOf(file)) {
    if (header === undefined) header = withColumn(cells, column);
    else if (cells.length !== header.length) throw refused(row, 'it does not match the header row');
    else if (isHeader(cells, header))
      throw refused(row, 'it is a header row again, as where files were joined');
    else yield decoded(row, cells[header.indexOf(column)]);
  }
  if (header === undefined) throw new BadRequestException('there is no header row: the text is empty');
}

/** NDJSON: on each line a uid, or an object with the member. */
export async function* uidsOfNdjson(file: Readable, member = 'uid'): AsyncGenerator<string> {
  for await (const { row, line } of rowsOf(file, 'lines')) yield decoded(row, memberOf(line, member, row));
}

/** On each line a uid. */
export async function* linesOf(file: Readable): AsyncGenerator<string> {
  for await (const { row, line } of rowsOf(file, 'lines')) yield decoded(row, line);
}

/** Rows without any text are left out, and counted. A line is a row of one cell. */
async function* rowsOf(file: Readable, format: 'csv' | 'lines' = 'csv') {
  const options: Options = {
    ...(format === 'lines' ? { quote: null, delimiter: '\n' } : {}),
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true, // of empty rows
    max_record_size: 1024 * 1024,
  };
  const parser = pipeline(file, textOf, parse(options), () => undefined); // an error of the file reaches the loop, too
  try {
    let row = 0;
    for await (const cells of parser as AsyncIterable<Cells>) {
      row += 1;
      if (cells.some((cell) => cell.trim() !== '')) yield { row, cells, line: cells[0] ?? '' };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const row = (error.records as number) + 1;
    throw new BadRequestException(`row ${row} cannot be read (${error.code})`); // the error quotes it
  }
}

/** Bytes that are no UTF-8 become U+FFFD. Not decoded by the parser: it would follow a byte order mark of UTF-16. */
async function* textOf(file: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let isFirstLine = true;
  for await (const bytes of file) {
    const text = decoder.decode(bytes, { stream: true });
    if (isFirstLine && /^[^\r\n]*\0/.test(text))
      throw new BadRequestException(
        'it is in UTF-16, or no text; hint: save it as "CSV UTF-8", or as text in UTF-8',
      );
    isFirstLine &&= !/[\r\n]/.test(text);
    yield text;
  }
  yield decoder.decode();
}

/** Names no column: a list without a header row has uids there. */
function withColumn(header: Cells, column: string): Cells {
  if (/^sep=/i.test(header[0] ?? ''))
    throw new BadRequestException('there is a row "sep=" above the header row; hint: remove it');
  const count = header.filter((name) => name === column).length;
  if (count === 1) return header;
  const found = count === 0 ? `no column "${column}"` : `${count} columns "${column}"`;
  throw new BadRequestException(`the header row has ${found}; hint: separate columns with commas`);
}

function isHeader(cells: Cells, header: Cells): boolean {
  return cells.every((cell) => header.includes(cell.replace(/^\uFEFF/, '')));
}

function memberOf(line: string, name: string, row: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw refused(row, 'it is not JSON'); // the error would quote it
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const count = countMembers(line, name);
  if (count === 1) return (value as Record<string, unknown>)[name];
  throw refused(row, `it has ${count === 0 ? 'no' : count} ${name}`);
}

/** How many members of the object itself have this name: of two, `JSON.parse` takes the last one silently. */
function countMembers(object: string, name: string): number {
  let depth = 0;
  let count = 0;
  for (const [token, text, colon] of object.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]/g)) {
    if (text !== undefined) count += colon && depth === 1 && JSON.parse(text) === name ? 1 : 0;
    else depth += token === '{' || token === '[' ? 1 : -1;
  }
  return count;
}

/** Text in another encoding would name somebody else. `requestMany` and `dryRun` refuse what is no uid otherwise. */
function decoded(row: number, uid: unknown): string {
  if (typeof uid === 'string' && uid.includes('\uFFFD')) throw refused(row, 'the uid is not in UTF-8');
  return uid as string;
}

function refused(row: number, problem: string): BadRequestException {
  return new BadRequestException(`row ${row}: ${problem}`);
}
