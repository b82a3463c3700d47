import { createReadStream } from 'node:fs';
import { extname } from 'node:path';
import { pipeline } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { BulkErasureRefused } from './bulk-erasure-form.js';
import type { UploadedList } from './uploaded-lists.js';

/**
 * The user names in an uploaded list: a column of a CSV with a header row; of any other text, each line.
 * @throws {BulkErasureRefused} from the loop, where the list cannot be read; names the line, never what is in it
 */
export async function* uploadedUids(list: UploadedList, column: string): AsyncGenerator<string> {
  const isCsv = extname(list.originalname).toLowerCase() === '.csv';
  const columns = isCsv ? (header: string[]) => withColumn(header, column) : [column];
  const parser = parse({ bom: true, columns, skip_empty_lines: true });
  const rows = pipeline(createReadStream(list.path), parser, () => undefined); // an error reaches the loop, too
  try {
    for await (const row of rows as AsyncIterable<Readonly<Record<string, string>>>) {
      const uid = row[column] ?? '';
      if (uid.includes('\uFFFD')) throw new BulkErasureRefused({ list: 'The file is not in UTF-8.' });
      yield uid;
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = String(error.lines); // the message would quote the line
    throw new BulkErasureRefused({ list: `Line ${line} of the file cannot be read (${error.code}).` });
  }
}

/** Of two columns of one name, as in a joined export, the parser would take the last one. */
function withColumn(header: string[], column: string): string[] {
  const count = header.filter((name) => name === column).length;
  if (count === 1) return header;
  const found = count === 0 ? 'no column' : `${count} columns`;
  throw new BulkErasureRefused({ list: `The file has ${found} "${column}".` });
}
