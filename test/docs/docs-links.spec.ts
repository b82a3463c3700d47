import { describe, expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pageOf, pages } from 'debate-space-fixtures/docs-snippets.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const others = [
  'CHANGELOG.md',
  'CODE_OF_CONDUCT.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
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
  // `../../` of the README is the repository on GitHub.
  return links
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:|^\.\.\/\.\.\/(?:actions|$)/.test(target));
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

/** The TypeScript and JavaScript of these folders, by their paths. */
function sourcesIn(...folders: string[]): (readonly [path: string, text: string])[] {
  const all = folders.flatMap((folder) =>
    readdirSync(root + folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  const sources = all.filter(
    (path) => /(?<!\.d)\.(ts|mjs|cjs)$/.test(path) && !/node_modules|\/dist\//.test(path),
  );
  return sources.map((path) => [path, readFileSync(root + path, 'utf8')]);
}

it('architecture.md names files that there are', () => {
  const files = sourcesIn('libs', 'sample-app', 'scripts', 'test').map(([path]) => path);
  const named = [...pageOf('docs/architecture.md').matchAll(/`([\w/-][\w/.-]*\.ts)`/g)].map(
    ([, name = '']) => name,
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((name) => !files.some((path) => `/${path}`.endsWith(`/${name}`)))).toEqual([]);
});

describe('the sources', () => {
  const sources = sourcesIn('libs', 'sample-app', 'scripts', 'test');
  const changes = ['CHANGELOG.md', pageOf('CHANGELOG.md')] as const;

  it('name pages that there are', () => {
    const missing = [...sources, changes].flatMap(([path, text]) =>
      [...text.matchAll(/\bdocs\/[\w/-]+\.md/g)]
        .filter(([page]) => !existsSync(root + page))
        .map(([page]) => `${path}: ${page}`),
    );
    expect(missing).toEqual([]);
  });

  it.each([
    ['service-interface.md', /service-interface\.md, sections? ([\d., andto]+\d|\d)/g, /^#{2,3} ([\d.]+) /gm],
    ['session-endings.md', /session-endings\.md, rules? ([\d, andto]+\d|\d)/g, /^(\d+)\. \*\*/gm],
  ])('cite sections and rules of %s that there are', (name, citation, numbering) => {
    const numbers = new Set(
      [...pageOf(`docs/spec/${name}`).matchAll(numbering)].map(([, number = '']) =>
        number.replace(/\.$/, ''),
      ),
    );
    const cited = sources
      .filter(([path]) => !path.startsWith('test/docs/'))
      .flatMap(([path, text]) =>
        [...text.replaceAll(/\n \* /g, ' ').matchAll(citation)].flatMap(([, list = '']) =>
          [...list.matchAll(/\d+(?:\.\d+)?/g)].map(([number]) => [path, number] as const),
        ),
      );
    expect(cited.length).toBeGreaterThan(3);
    expect(cited.filter(([, number]) => !numbers.has(number))).toEqual([]);
  });
});
