import { BadRequestException } from '@nestjs/common';
import { CsvError, parse } from 'csv-parse';
import { pipeline, type Readable } from 'node:stream';

/** CSV, separated by commas: the uids in one column. */
export async function* uidsOfCsv(file: Readable, column = 'uid'): AsyncGenerator<string> {
  const parser = parse({ columns: true, skip_empty_lines: true });
  const rows = pipeline(file, textOf, parser, () => undefined); // an error of the file reaches the loop, too
  try {
    for await (const row of rows as AsyncIterable<Partial<Record<string, string>>>) {
      const uid = row[column];
      if (uid === undefined) throw new BadRequestException(`There is no column "${column}".`);
      yield uid;
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new BadRequestException(`Line ${String(error.lines)} cannot be read (${error.code}).`);
  }
}

/** NDJSON: on each line a JSON object with a uid. */
export async function* uidsOfNdjson(file: Readable): AsyncGenerator<string> {
  let item = 0;
  for await (const line of linesOf(file)) yield uidOf(line, (item += 1));
}

/** On each line a uid. Lines without any text are left out. */
export async function* linesOf(file: Readable): AsyncGenerator<string> {
  let rest = '';
  for await (const text of textOf(file)) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? '';
    yield* lines.filter((line) => line.trim() !== '');
  }
  if (rest.trim() !== '') yield rest;
}

function uidOf(line: string, item: number): string {
  try {
    return (JSON.parse(line) as { uid: string }).uid;
  } catch {
    throw new BadRequestException(`Item ${item} is not JSON.`); // the error would quote it
  }
}

/** Refuses text in another encoding, whose uids would be those of other users. Removes a byte order mark. */
async function* textOf(file: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw new BadRequestException('The file is not in UTF-8.');
    }
  };
  for await (const bytes of file) yield decode(bytes);
  yield decode();
}
