import { readdirSync, readFileSync } from 'node:fs';

/** The text of a page of the documentation, such as `docs/sessions.md`. */
export function pageOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/** The README and all pages of `docs/`, by their paths. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(new URL('../../docs/', import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`)
    .toSorted(),
];

/** A fenced snippet of a page. */
export interface Fence {
  readonly language: string;
  readonly code: string;
}

/** The snippets of a page, also those inside a list. */
export function fencesOf(page: string): Fence[] {
  const found = pageOf(page).matchAll(/^( *)```(\S*)\n(.*?)^\1```$/gms);
  return [...found].map(([, indent = '', language = '', code = '']) => ({
    language,
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}
