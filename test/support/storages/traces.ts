import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The ways in which a text may stand in a file, by name. */
export function formsOf(text: string): ReadonlyMap<string, Buffer> {
  const utf8 = Buffer.from(text);
  const escaped = text.replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const forms: Record<string, string | Buffer> = {
    'UTF-8': utf8,
    'UTF-16LE': Buffer.from(text, 'utf16le'),
    'UTF-16BE': Buffer.from(text, 'utf16le').swap16(),
    'Latin-1': Buffer.from(text, 'latin1'),
    JSON: JSON.stringify(text).slice(1, -1),
    'JSON in JSON': JSON.stringify(JSON.stringify(text)).slice(3, -3),
    'escaped JSON': escaped,
    'part of a URL': encodeURIComponent(text),
    'part of a form': new URLSearchParams({ '': text }).toString().slice(1),
    hex: utf8.toString('hex'),
    HEX: utf8.toString('hex').toUpperCase(),
  };
  for (const before of [0, 1, 2]) forms[`base64, ${before} bytes into it`] = base64(utf8, before);
  for (const before of [0, 1, 2])
    forms[`base64url, ${before} bytes into it`] = base64(utf8, before)
      .replaceAll('+', '-')
      .replaceAll('/', '_');
  return new Map(Object.entries(forms).map(([name, form]) => [name, Buffer.from(form)]));
}

/** The part that is the same whatever stands around the text. */
function base64(bytes: Buffer, before: number): string {
  const all = Buffer.concat([Buffer.alloc(before), bytes]);
  const whole = Math.floor(all.length / 3) * 4;
  return all.toString('base64').slice(Math.ceil((before * 4) / 3), whole);
}

/** @returns the forms in which the text is found */
export function tracesOf(text: string, where: readonly Buffer[]): readonly string[] {
  const found = [...formsOf(text)].filter(([, form]) => where.some((bytes) => bytes.includes(form)));
  return found.map(([name]) => name);
}

/** Every file of a folder, and of those in it. */
export async function filesOf(folder: string): Promise<readonly Buffer[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile());
  return Promise.all(files.map((file) => readFile(join(file.parentPath, file.name)).catch(nothingIfGone)));
}

/** A server removes files while they are read. */
function nothingIfGone(error: unknown): Buffer {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
  throw error;
}
