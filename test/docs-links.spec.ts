import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pageOf, pages } from './support/docs-snippets.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const others = [
  'CHANGELOG.md',
  'sample-app/README.md',
  'libs/debate-space-cli/README.md',
  'libs/debate-space-simulator/README.md',
];

const withoutFences = (text: string): string => text.replaceAll(/^( *)```.*?^\1```$/gms, '');

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of withoutFences(pageOf(page)).matchAll(/^#{1,6} (.*)$/gm)) {
    const text = heading.replaceAll(/\[(.*?)\]\(.*?\)/g, '$1').toLowerCase();
    const slug = text.replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '').replaceAll(' ', '-');
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The targets of links and pictures that lie in this repository. */
function linksOf(page: string): string[] {
  const text = withoutFences(pageOf(page));
  const links = [
    ...text.matchAll(/\]\(([^()\s]+)\)/g),
    ...text.matchAll(/<(?:img|a)[^>]* (?:src|href)="([^"]+)"/g),
  ];
  return links.map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

describe.each([...pages, ...others])('%s', (page) => {
  it('has relative links that lead somewhere', () => {
    const broken = linksOf(page).filter((target) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : posix.join(posix.dirname(page), path);
      if (!existsSync(root + file)) return true;
      return anchor !== undefined && !anchorsOf(file).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});
