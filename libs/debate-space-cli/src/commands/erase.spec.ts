import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { execFile } from 'node:child_process';
import { appendFile, constants, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DebateSpaceErasures, StorageError } from 'nestjs-debate-space';
import { configuredFor, keys, run, start } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

let service: DebateSpaceSimulator;
let env: NodeJS.ProcessEnv;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-erase-'));
  service = await DebateSpaceSimulator.start({
    apiKey: keys.DEBATE_SPACE_API_KEY,
    secretKey: keys.DEBATE_SPACE_SECRET_KEY,
    users: [{ uid: 'ada' }, { uid: 'ben' }, { uid: 'cleo' }],
    rateLimit: false,
  });
  env = configuredFor(service, { DEBATE_SPACE_RATE_LIMIT: 'off' });
});
afterEach(async () => {
  await service.stop();
  await rm(folder, { recursive: true });
});

const uids = (): (string | null)[] =>
  service.users
    .all()
    .map(({ uid }) => uid)
    .filter(Boolean);
const file = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

describe('erase', () => {
  it('deletes, waits until it is done, and answers with the counts', async () => {
    const { code, out, err } = await run('erase ada nobody --mode delete --reference case-0 --yes --json', {
      env,
    });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      mode: 'delete',
      state: 'done',
      total: 2,
      done: 1,
      notFound: 1,
    });
    expect(uids()).toEqual(['ben', 'cleo']);
    expect(err).toContain('2 of 2');
    expect(err).toContain('Not erased: 1 user not found.');
    expect(err + out).not.toMatch(/ada|nobody/);
  });

  it('anonymizes the users of a file', async () => {
    await file('users.csv', 'id,email\nada,ada@example.org\nben,ben@example.org\n');
    const command =
      'erase --file users.csv --column id --mode anonymize --reference case-1 --requested-by desk --yes';
    const { code, out } = await run(command, { env, folder });
    expect(code).toBe(0);
    expect(out).toMatch(/^reference +case-1$/m);
    expect(out).toMatch(/^requested by +desk$/m);
    expect(out).toMatch(/^done +2$/m);
    expect(uids()).toEqual(['cleo']);
  });

  it.each([
    ['users.ndjson', '{"uid":"ada"}\n{"uid":"ben"}\n'],
    ['users.txt', 'ada\nben\n'],
  ])('reads %s', async (name, text) => {
    await file(name, text);
    expect(await run(`erase --file ${name} --mode delete --yes`, { env, folder })).toMatchObject({ code: 0 });
    expect(uids()).toEqual(['cleo']);
  });

  it('reads stdin', async () => {
    const piped = 'ada\nben\n';
    const { code } = await run('erase --file - --format lines --mode delete --yes', { env, piped });
    expect(code).toBe(0);
    expect(uids()).toEqual(['cleo']);
  });

  it('says that it is unknown whether the list was stored when the storage does not answer, and names the reference', async () => {
    const failing = jest.spyOn(DebateSpaceErasures.prototype, 'requestMany');
    failing.mockRejectedValueOnce(new StorageError('Postgres failed (no answer)'));
    const { code, out, err } = await run('erase ada --mode delete --reference case-1 --yes --json', { env });
    failing.mockRestore();
    expect([code, JSON.parse(out)]).toEqual([
      3,
      { error: { code: 'ERR_DEBATE_SPACE_STORAGE', message: 'Postgres failed (no answer)' } },
    ]);
    expect(err).toContain(
      'It is unknown whether the list was stored. Go on: the same command with --reference case-1; nobody is erased twice.',
    );
  });

  it('names the row of a file that is no uid, and erases nobody', async () => {
    await file('users.ndjson', '{"uid":"ada"}\n{"id":"ben"}\n');
    const { code, err } = await run('erase --file users.ndjson --mode delete --yes', { env, folder });
    expect(code).toBe(2);
    expect(err).toContain('users.ndjson: row 2: it has no uid');
    expect(uids()).toHaveLength(3);
  });

  it.each([
    ['its header row', 'id,name\nada,x\n', 'the header row has no column "uid" (columns: 2)'],
    ['a quote', 'uid\nada\n"ben"x\n', 'row 3 cannot be read (CSV_INVALID_CLOSING_QUOTE)'],
  ])('does not understand a CSV for %s, and asks for nothing', async (_, text, problem) => {
    await file('users.csv', text);
    const { code, err } = await run('erase --file users.csv --mode delete', {
      env,
      folder,
      typed: 'delete 1',
    });
    expect(code).toBe(2);
    expect(err).toContain(`users.csv: ${problem}`);
    expect(err).not.toContain('ben');
    expect(service.received.all).toEqual([]);
  });

  it('says what is left of a long list that cannot be read to its end, and continues with a correct one', async () => {
    const rows = ['uid', 'ada', ...Array.from({ length: 600 }, (_, n) => `unknown-${n}`)].join('\n');
    await file('users.csv', `${rows}\n"ben"x\n`);
    await sqliteFile(join(folder, 'store.db'));
    const kept = { ...env, DEBATE_SPACE_STORAGE: 'sqlite:store.db' };
    const command = 'erase --file users.csv --mode delete --reference case-1 --execute-here --yes';
    const { code, err } = await run(command, { env: kept, folder });
    expect([code, err]).toEqual([2, expect.stringContaining('users.csv: row 603 cannot be read')]);
    expect(err).toMatch(
      /\d+ users of case-1 noted; nobody is erased .* debate-space erasures cancel case-1$/m,
    );
    expect(uids()).toHaveLength(3);
    await file('users.csv', `${rows}\n`);
    expect(await run(`${command} --json`, { env: kept, folder })).toMatchObject({ code: 0 });
    expect(uids()).toEqual(['ben', 'cleo']);
  });

  it.each(['--yes', ''])('erases nobody of a list without a user, and asks for nothing (%s)', async (yes) => {
    await file('users.csv', 'uid,name\n');
    const typed = yes === '' ? { typed: 'delete 0' } : {};
    const command = `erase --file users.csv --mode delete ${yes}`.trim();
    const { code, err } = await run(command, { env, folder, ...typed });
    expect([code, err]).toEqual([2, expect.stringMatching(/the list has no user/i)]);
    expect(service.received.of('delete')).toEqual([]);
  });

  it('counts in a dry run, and does nothing', async () => {
    await file('users.csv', 'uid,name\nada,1\n\nada,1\nnobody,1\n..,1\nben\n');
    const command = 'erase --file users.csv --mode delete --dry-run';
    const { code, out } = await run(`${command} --json`, { env, folder });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      total: 5,
      distinct: 2,
      duplicates: 1,
      invalid: 2,
      invalidRows: [6, 7],
      known: 1,
      notFound: 1,
      notFoundRows: [5],
      alreadyRequested: 0,
      suspicious: 0,
      suspiciousRows: [],
    });
    const { out: text } = await run(command, { env, folder });
    expect(text).toMatch(/^rows without a uid +6, 7$/m);
    expect(text).toMatch(/^not found in rows +5$/m);
    expect(uids()).toHaveLength(3);
  });

  it('has no counts when the user list breaks off in the middle', async () => {
    for (let n = 0; n < 150; n += 1) service.users.add({ uid: `u-${n}` });
    service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    expect(await run('erase u-149 --mode delete --dry-run', { env })).toMatchObject({ code: 4, out: '' });
  });

  const ODD = [' ada', 'ben\u00A0', 'a\u200Bda', '\uFEFFcleo', '9.0E+15', 'NULL', '#N/A'];

  it('names suspicious rows apart in a dry run, without their uids, and ends with 9 when nobody is found', async () => {
    await file('users.txt', ODD.join('\n'));
    const command = 'erase --file users.txt --mode delete --dry-run';
    const { code, out, err } = await run(`${command} --json`, { env, folder });
    expect(code).toBe(9);
    expect(JSON.parse(out)).toMatchObject({
      known: 0,
      notFound: 7,
      suspicious: 7,
      suspiciousRows: [
        { row: 1, reason: 'a blank at its start or end' },
        { row: 2, reason: 'a blank at its start or end' },
        { row: 3, reason: 'an invisible character' },
        { row: 4, reason: 'a byte order mark, as where files were joined' },
        { row: 5, reason: 'a number in scientific notation' },
        { row: 6, reason: 'a word for a missing value' },
        { row: 7, reason: 'an error of a spreadsheet' },
      ],
    });
    expect(err).toContain('Nobody was found: the service knows none of the users');
    const { out: text } = await run(command, { env, folder });
    expect(text).toMatch(/^suspicious +7$/m);
    expect(text).toMatch(/^uid with a blank at its start or end +1, 2$/m);
    expect(out + err + text).not.toMatch(/ada|ben|cleo|9\.0|NULL|N\/A/);
  });

  it('names suspicious rows before the confirmation', async () => {
    await file('users.txt', `ada\n${ODD.join('\n')}`);
    const { code, err } = await run('erase --file users.txt --mode delete', { env, folder, typed: 'no' });
    expect(code).toBe(1);
    expect(err).toContain('(7 not found, 7 suspicious)\n');
    expect(err).toContain('\n  uid with a blank at its start or end, in rows 2, 3\n');
  });

  it.each([
    ['nobody --mode delete', { typed: 'delete 1' }, '(1 not found: the service knows none of them)'],
    ['nobody noone --mode anonymize --yes', {}, 'reference: '],
    ['--file users.txt --mode delete --yes', {}, 'warning: uid with an invisible character, in rows 3'],
  ])('ends with 9, and says so, when nobody is found: %s', async (list, terminal, part) => {
    await file('users.txt', ODD.join('\n'));
    const { code, out, err } = await run(`erase ${list} --json`, { env, folder, ...terminal });
    expect([code, JSON.parse(out)]).toEqual([9, expect.objectContaining({ done: 0, state: 'done' })]);
    expect(err).toContain(part);
    expect(err).toContain('Nobody was erased: the service knows none of the users');
    expect(uids()).toHaveLength(3);
  });

  it('takes the mode and the confirmation in British spelling', async () => {
    const british = ['anonymi', 'se'].join('');
    const { code } = await run(`erase ada --mode ${british}`, { env, typed: `${british} 1` });
    expect([code, service.users.has('ada')]).toEqual([0, false]);
    const refused = await run('erase ben --mode erase', { env });
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('Allowed choices are anonymize, delete.');
  });

  it('says what it will do, and does it when the verb and the number are typed', async () => {
    const { code, err } = await run('erase ada nobody --mode delete', { env, typed: 'delete 2' });
    expect(err).toContain(
      `2 users of "demo" at ${new URL(service.url).host} will be deleted with all their contributions. This cannot be undone.\n(1 not found)`,
    );
    expect(err).toContain('Type "delete 2" to proceed: ');
    expect(code).toBe(0);
    expect(uids()).toEqual(['ben', 'cleo']);
  });

  it.each(['yes', 'delete', 'delete 3', 'anonymize 2', ''])(
    'does nothing when "%s" is typed',
    async (typed) => {
      const { code, err } = await run('erase ada ben --mode delete', { env, typed });
      expect(code).toBe(1);
      expect(err).toContain('Nothing was changed');
      expect(uids()).toHaveLength(3);
    },
  );

  it('refuses when there is nobody to type, and no --yes', async () => {
    const { code, err } = await run('erase ada --mode delete', { env });
    expect(code).toBe(2);
    expect(err).toContain('--yes');
    expect(uids()).toHaveLength(3);
  });

  it('stops at the question when it is interrupted', async () => {
    const { code, waitForStderr, interrupt, err } = start('erase ada --mode delete', {
      env,
      isTerminal: true,
    });
    await waitForStderr('Type');
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('Nothing was changed');
  });

  it.each([
    ['erase ada', '--mode'],
    ['erase ada --mode remove', 'anonymize, delete'],
    ['erase --mode delete', '--file'],
    ['erase ada --file users.csv --mode delete', '--file'],
    ['erase ada --format csv --mode delete', '--file'],
    ['erase --file users.xlsx --mode delete', '--format'],
    ['erase --file - --mode delete --yes', '--format'],
    ['erase --file - --format csv --mode delete', '--yes'],
  ])('does not understand: %s', async (command, part) => {
    const { code, err } = await run(command, { env, folder });
    expect(code).toBe(2);
    expect(err).toContain(part);
  });

  it('says so when the file is not there', async () => {
    const { code, err } = await run('erase --file users.csv --mode delete --yes', { env, folder });
    expect(code).toBe(1);
    expect(err).toContain('users.csv cannot be read (ENOENT)');
  });

  it('stops when it is interrupted, says how to go on, and goes on with the same reference', async () => {
    service.faults.add({ kind: 'status', status: 503, operation: 'delete' });
    const command = 'erase ada ben --mode delete --reference case-2 --yes --json';
    const { code, waitForStderr, interrupt, out, err } = start(command, { env });
    await waitForStderr('not done at the first attempt (503)');
    interrupt();
    expect(await code).toBe(5);
    expect(JSON.parse(out())).toMatchObject({ reference: 'case-2', waiting: 2 });
    expect(err()).toContain('Go on: the same command with --reference case-2');

    service.faults.clear();
    expect(await run(command, { env })).toMatchObject({ code: 0 });
    expect(uids()).toEqual(['cleo']);
  });
});

describe('a list that changes after it was counted', () => {
  let pipe: string | undefined;
  afterEach(async () => {
    if (pipe === undefined) return;
    // A command that reads the pipe once more waits for a writer, and the test runner for the command.
    await (await open(pipe, constants.O_RDWR | constants.O_NONBLOCK)).close();
    pipe = undefined;
  });

  const changes: [string, (path: string) => Promise<unknown>][] = [
    ['grows', (path) => appendFile(path, 'ben\ncleo\n')],
    ['is written anew', (path) => writeFile(path, 'ben\n')],
    [
      'is replaced',
      async (path) => {
        await writeFile(`${path}.new`, 'cleo\n');
        await rename(`${path}.new`, path);
      },
    ],
    ['is emptied', (path) => writeFile(path, '')],
    ['is removed', (path) => rm(path)],
  ];

  it.each(changes)('%s, and the users that were confirmed are erased', async (_, change) => {
    await file('users.txt', 'ada\n');
    const command = 'erase --file users.txt --mode delete --json';
    const { code, waitForStderr, type, out } = start(command, { env, folder, isTerminal: true });
    await waitForStderr('Type "delete 1" to proceed: ');
    await change(join(folder, 'users.txt'));
    type('delete 1');
    expect(await code).toBe(0);
    expect(JSON.parse(out())).toMatchObject({ total: 1, done: 1 });
    expect(uids()).toEqual(['ben', 'cleo']);
  });

  it('is a pipe, which can be read only once, and the users that were confirmed are erased', async () => {
    pipe = join(folder, 'users.txt');
    await promisify(execFile)('mkfifo', [pipe]);
    const command = 'erase --file users.txt --mode delete --json';
    const { code, waitForStderr, type, out } = start(command, { env, folder, isTerminal: true });
    await writeFile(pipe, 'ada\nben\n');
    await waitForStderr('Type "delete 2" to proceed: ');
    type('delete 2');
    expect(await code).toBe(0);
    expect(JSON.parse(out())).toMatchObject({ total: 2, done: 2 });
    expect(uids()).toEqual(['cleo']);
  });
});
