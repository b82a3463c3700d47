import { expect, it } from '@jest/globals';
import { pageOf } from '#support/docs-snippets.js';
import { endings } from '../../libs/debate-space-cli/src/failure.js';
import { variables } from '../../libs/debate-space-cli/src/settings.js';
import { run } from '../../libs/debate-space-cli/src/testing/command-line.js';

const page = pageOf('docs/cli.md');
const rowsOf = (first: RegExp): string[] =>
  page.split('\n').flatMap((line) => (line.startsWith('|') ? (first.exec(line)?.slice(1) ?? []) : []));

it('docs/cli.md has the exit codes, each with the words of the help', () => {
  const meanings = Object.values(endings).flatMap(([code, meaning]) => [String(code), meaning]);
  expect(rowsOf(/^\| (\d) +\| (.*?) +\|$/)).toEqual(meanings);
});

it('docs/cli.md has the variables that the command line reads, and no others', () => {
  expect(rowsOf(/^\| `(DEBATE_SPACE_\w+)`/).toSorted()).toEqual(Object.values(variables).toSorted());
});

it('docs/cli.md has each command that the help has', async () => {
  const listed = async (command: string): Promise<string[]> => {
    const { out } = await run(`${command} --help`.trim());
    const [, commands = ''] = /\nCommands:\n(.*?)\n\n/s.exec(`${out}\n\n`) ?? [];
    return [...commands.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => `${command} ${name}`.trim());
  };
  const found: string[] = [];
  for (const name of await listed('')) {
    const further = (await listed(name)).filter((each) => !each.endsWith(' help'));
    if (name !== 'help') found.push(...(further.length > 0 ? further : [name]));
  }
  expect(found.length).toBeGreaterThan(15);
  expect(found.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
