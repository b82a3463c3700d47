import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestOf } from '../../scripts/manifest.js';
import { refusePlaceholder, repositoryUrl, stage } from '../../scripts/staged.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const url = 'https://github.com/somebody/nestjs-debate-space';
const directories = {
  'nestjs-debate-space': 'libs/debate-space',
  'debate-space-simulator': 'libs/debate-space-simulator',
  'debate-space': 'libs/debate-space-cli',
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'staged-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe.each(Object.entries(directories))('the package %s', (name, directory) => {
  let place: string;
  beforeAll(() => {
    place = stage(name, folder, url);
  });

  it('names the owner of the repository that is given', () => {
    const { repository, bugs, homepage } = manifestOf(place);
    expect(repository).toEqual({ type: 'git', url: `git+${url}.git`, directory });
    expect(bugs).toBe(`${url}/issues`);
    expect(homepage).toContain(url);
  });

  it('links from its pages to what it has, and else to the repository', () => {
    const { files = [] } = manifestOf(place);
    const pages = files.filter((file) => file.endsWith('.md') && existsSync(join(place, file)));
    expect(pages).toContain('README.md');
    for (const page of pages) {
      const text = readFileSync(join(place, page), 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '');
      const targets = [...text.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target);
      const dead = targets.filter(
        (target) => !/^https?:/.test(target) && !existsSync(join(place, dirname(page), target)),
      );
      expect([page, dead]).toEqual([page, []]);
    }
  });
});

describe('the owner of the repository', () => {
  it('stands in one place', () => {
    const found = execFileSync('git', ['grep', '-l', '--untracked', 'github.com/OWNER'], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(found.trim().split('\n')).toEqual(['package.json', 'test/module/packed.spec.ts']);
    expect(repositoryUrl()).toMatch(/^https:\/\/github\.com\/[\w-]+\/nestjs-debate-space$/);
  });

  it('must be set before a package is published', () => {
    expect(() => {
      refusePlaceholder('https://github.com/OWNER/nestjs-debate-space');
    }).toThrow('package.json');
    expect(() => {
      refusePlaceholder(url);
    }).not.toThrow();
    for (const directory of Object.values(directories)) {
      const { scripts } = manifestOf(join(root, directory));
      expect(scripts?.prepublishOnly).toMatch(/npm run release.*exit 1/);
    }
  });
});
