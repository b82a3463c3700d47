import { describe, expect, it } from '@jest/globals';
import type { Command } from 'commander';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { parseEnv } from 'node:util';
import { DEMO_CREDENTIALS } from '../../libs/debate-space-simulator/src/simulator-options.js';
import { Output } from '../../libs/debate-space-cli/src/output.js';
import { buildProgram } from '../../libs/debate-space-cli/src/program.js';
import { fencesOf, pageOf, pages } from 'debate-space-fixtures/docs-snippets.js';

const stream = new PassThrough();
const io = { env: {}, folder: '/', stdin: stream, stdout: stream, stderr: stream };
const quiet = { ...io, interrupted: new AbortController().signal };
const program = buildProgram({ io: quiet, output: new Output(quiet) });

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Commands in `sh` snippets, one a line; and those that the text quotes. */
const shellLines = pages.flatMap((page) =>
  fencesOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => code.split('\n'))
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ page, line })),
);
const quoted = pages.flatMap((page) =>
  [...pageOf(page).matchAll(/`((?:npx|npm) [^`\n]+)`/g)].map(([, line = '']) => ({ page, line })),
);
const commands = [...shellLines, ...quoted].flatMap(({ page, line }) =>
  line.split(/ && | \| /).map((command) => ({ page, command: command.trim() })),
);
const starting = (words: string): { page: string; command: string }[] =>
  commands.filter(({ command }) => command.startsWith(words));

/** The command of the command line that these words name, as far as they do. */
function commandOf(words: readonly string[]): { command: Command; rest: readonly string[] } {
  let command: Command = program;
  let rest = words;
  for (;;) {
    const next = command.commands.find((each) => each.name() === rest[0]);
    if (!next) return { command, rest };
    command = next;
    rest = rest.slice(1);
  }
}

describe('the demo values of the docs', () => {
  it('are those with which the simulator starts', () => {
    const files = pages.flatMap((page) => fencesOf(page).filter(({ language }) => language === 'ini'));
    expect(files.length).toBeGreaterThan(0);
    const { apiKey, secretKey, applicationName } = DEMO_CREDENTIALS;
    for (const { code } of files)
      expect(parseEnv(code)).toEqual({
        DEBATE_SPACE_API_KEY: apiKey,
        DEBATE_SPACE_SECRET_KEY: secretKey,
        DEBATE_SPACE_APPLICATION_NAME: applicationName,
        DEBATE_SPACE_AUTH_URL: 'http://127.0.0.1:4010',
      });
  });
});

describe('the commands of the docs', () => {
  it('are of a kind that this test knows', () => {
    const known =
      /^(git clone |cd |npm (ci|install|start|test|run )|npx (debate-space(-simulator)?|nest add|tsx|esbuild|webpack)|curl |openssl rand|node --input-type|import |console|gzip|timeout )/;
    const unknown = shellLines.filter(
      ({ line }) => !line.split(/ && | \| /).every((each) => known.test(each.trim())),
    );
    expect(unknown).toEqual([]);
  });

  it.each(starting('npm run '))('$page: $command is a script of this workspace', ({ command }) => {
    expect(scripts).toHaveProperty([command.split(' ')[2] ?? '']);
  });

  const cli = starting('npx debate-space').filter(
    ({ command }) => !command.startsWith('npx debate-space-simulator'),
  );
  it.each(cli)('$page: $command is a command with these options', ({ command }) => {
    const words = command.split(/ [>…]/)[0]?.split(' ').slice(2) ?? [];
    const { command: found, rest } = commandOf(words);
    if (words.length > 0) expect(found).not.toBe(program);
    const options = [...found.options, ...program.options].map(({ long }) => long);
    for (const word of rest.filter((each) => each.startsWith('--'))) expect(options).toContain(word);
  });

  it('have requests with curl that the simulator or an example takes', async () => {
    const service = await DebateSpaceSimulator.start();
    const requests = starting('curl ').filter(({ command }) => command.includes('4010'));
    expect(requests.length).toBeGreaterThan(0);
    for (const { command } of requests) {
      const [url = ''] = /http:\S+/.exec(command) ?? [];
      const [, body] = /-d '(.*?)'/.exec(command) ?? [];
      const [, name = 'accept', value = '*/*'] = /-H '(.*?): (.*?)'/.exec(command) ?? [];
      const init = body === undefined ? {} : { method: 'POST', body, headers: { [name]: value } };
      const response = await fetch(url.replace('http://127.0.0.1:4010', service.url), init);
      expect([command, response.ok]).toEqual([command, true]);
    }
    expect(service.debate.isSignedIn('alice')).toBe(true);
    await service.stop();
  });
});

it('the alarms of docs/operations.md are about metrics of its table', () => {
  const [alarms] = fencesOf('docs/operations.md').filter(({ language }) => language === 'yaml');
  const named = [...(alarms?.code ?? '').matchAll(/debate_space_\w+/g)].map(([name]) => name);
  const metrics = [...pageOf('docs/operations.md').matchAll(/^\| `(debate_space\.[\w.]+)`/gm)];
  const table = metrics.map(([, name = '']) => name.replaceAll('.', '_'));
  expect(named.length).toBeGreaterThan(2);
  for (const name of named) expect(table).toContain(name);
});
