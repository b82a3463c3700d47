import { describe, expect, it } from '@jest/globals';
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { runChecks } from './doctor/run-checks.js';
import { exitCodeMeanings } from './exit-codes.js';
import { Output } from './output.js';
import { buildProgram } from './program.js';
import { readSettings } from './settings.js';
import { variables } from './variables.js';

const page = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

const stream = new PassThrough();
const io = {
  env: {},
  folder: '/',
  stdin: stream,
  stdout: stream,
  stderr: stream,
  interrupted: new AbortController().signal,
};
const program = buildProgram({ io, output: new Output(io) });

/** Every command that does something, by its full name. */
function commandsOf(parent: Command, path = ''): (readonly [string, Command])[] {
  return parent.commands.flatMap((command) => {
    const name = `${path}${command.name()}`;
    return command.commands.length > 0 ? commandsOf(command, `${name} `) : [[name, command] as const];
  });
}

const commands = new Map(commandsOf(program));
const found = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, part = '']) => part);
const flagsOf = (command: Command): string[] => command.options.map(({ flags }) => flags);

/** The section of each command. */
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [, name = ''] = /^`(.+)`/.exec(section) ?? [];
      return [name, section.split(/^## /m)[0] ?? ''] as const;
    }),
);

describe('docs/cli.md', () => {
  it('has a section for every command, and for no other', () => {
    expect([...sections.keys()].toSorted()).toEqual([...commands.keys()].toSorted());
  });

  it.each([...commands.keys()])('names every option of %s, and no other', (name) => {
    const named = found(sections.get(name) ?? '', /^\| `(--[^`]+)`/gm);
    expect(named).toEqual(flagsOf(commands.get(name) ?? program));
  });

  it('names every variable, and no other', () => {
    expect(found(page, /^\| `(DEBATE_SPACE_\w+)`/gm)).toEqual(Object.values(variables));
  });

  it('names every check of doctor, in their order', async () => {
    const context = {
      io,
      output: new Output(io),
      settings: readSettings({ DEBATE_SPACE_API_KEY: 'k' }, '/'),
    };
    const checks: string[] = [];
    for await (const { check } of runChecks(context)) checks.push(check);
    const named = found(sections.get('doctor') ?? '', /^\| `([\w-]+)`/gm);
    expect(named.filter((check) => check !== 'tls')).toEqual([...new Set(checks)]);
  });
});

describe.each([
  ['docs/cli.md', page],
  ['README.md', readme],
])('%s', (_, text) => {
  it('has the exit codes with their meanings', () => {
    const table = [...text.matchAll(/^\| (\d) +\| (.*?) +\|$/gm)].map(([, code, meaning]) => [
      Number(code),
      meaning,
    ]);
    expect(table).toEqual(exitCodeMeanings);
  });

  it('has examples of commands and options that there are', () => {
    const examples = found(text, /npx debate-space (.*)$/gm).filter(
      (example) => example !== '' && !example.includes('`'),
    );
    expect(examples.length).toBeGreaterThan(3);
    for (const example of examples) expectUnderstood(example);
  });
});

it('the help has examples of commands and options that there are', () => {
  for (const command of [program, ...program.commands]) {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    const examples = found(help, /^ {2}npx debate-space (.*)$/gm);
    expect(examples.length).toBeGreaterThan(0);
    examples.forEach(expectUnderstood);
  }
});

function expectUnderstood(example: string): void {
  const words = example.split(/ [|<>]/)[0]?.split(' ') ?? [];
  const name = [...commands.keys()].find((each) => words.join(' ').concat(' ').startsWith(`${each} `));
  expect([example, name]).toEqual([example, expect.any(String)]);
  const known = [program, commands.get(name ?? '') ?? program].flatMap((each) =>
    each.options.map(({ long }) => long),
  );
  for (const word of words.filter((each) => each.startsWith('--'))) expect(known).toContain(word);
}
