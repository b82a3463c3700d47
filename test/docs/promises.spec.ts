import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

const specs = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.spec.ts'))
  .map((file) => file.replaceAll('\\', '/').replace('.spec.ts', ''));
const cells = readFileSync(`${root}docs/promises.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').at(-2) ?? '');

/** The specs that a cell names; `…-x` is the first spec of the cell, with another end. */
function namedIn(cell: string): readonly string[] {
  const [first = '', ...others] = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const folderOf = (name: string): string => name.slice(0, name.indexOf('/') + 1);
  const whole = (name: string): string =>
    specs.find((spec) => spec.startsWith(folderOf(first)) && spec.endsWith(name.slice(1))) ?? name;
  return [first, ...others.map((name) => (name.startsWith('…') ? whole(name) : name))].filter(Boolean);
}

describe('docs/promises.md', () => {
  const named = cells.flatMap(namedIn);

  it('names specs that exist', () => {
    expect(named.filter((name) => !specs.includes(name))).toEqual([]);
  });

  it('has a promise for each spec', () => {
    expect(specs.filter((spec) => !named.includes(spec))).toEqual([]);
  });
});
