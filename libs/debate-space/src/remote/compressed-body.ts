import { brotliDecompress, unzip } from 'node:zlib';

type Decompress = (
  body: Buffer,
  options: { maxOutputLength?: number },
  done: (error: Error | null, content: Buffer) => void,
) => void;

export const ACCEPTED_ENCODINGS = 'gzip, br';
/** zlib's code for what is longer than `maxOutputLength`; it stops there. */
export const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';

/** `unzip` knows gzip and deflate by their first bytes; deflate was never asked for, some send it all the same. */
const DECOMPRESS = new Map<unknown, Decompress>([
  ['gzip', unzip],
  ['x-gzip', unzip],
  ['deflate', unzip],
  ['br', brotliDecompress],
]);

/** `undefined` for a body that is to be taken as it is. */
export function decompressorFor(contentEncoding: unknown): Decompress | undefined {
  return DECOMPRESS.get(contentEncoding);
}
