import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configuredFor, keys, run, start, type RunningCommand } from '../testing/command-line.js';

let service: DebateSpaceSimulator;
let env: NodeJS.ProcessEnv;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-users-'));
  service = await DebateSpaceSimulator.start({
    apiKey: keys.DEBATE_SPACE_API_KEY,
    secretKey: keys.DEBATE_SPACE_SECRET_KEY,
    users: [
      { uid: 'ada', first_name: 'Ada', last_name: 'Example', email: 'ada@example.org' },
      { uid: 'ben', first_name: 'Ben\u001b[31m', last_name: 'of "two\nlines"' },
      { uid: 'cleo' },
    ],
  });
  env = configuredFor(service);
});
afterEach(async () => {
  await service.stop();
  await rm(folder, { recursive: true });
});

describe('users list', () => {
  it('shows one page, and how to see the next', async () => {
    const { code, out } = await run('users list --per-page 2', { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^uid +name +e-mail +created\nada +Ada Example +ada@example\.org/);
    expect(out).toContain('page 1 of 2, 3 users in all; next: --page 2');
  });

  it.each(['0', '101', '1e2'])('refuses --per-page %s, and requests nothing', async (perPage) => {
    const { code, err } = await run(`users list --per-page ${perPage}`, { env });
    expect([code, err]).toEqual([2, expect.stringContaining('a whole number from 1 to 100')]);
    expect(service.received.all).toEqual([]);
  });

  it('says which address it cannot reach', async () => {
    await service.goDown();
    const { code, err } = await run('users list', { env });
    const { host } = new URL(service.url);
    expect([code, err]).toEqual([
      4,
      expect.stringContaining(`Cannot reach ${host} (ECONNREFUSED). Check DEBATE_SPACE_AUTH_URL`),
    ]);
  });

  it('does not let a name steer the terminal', async () => {
    const { out } = await run('users list', { env });
    expect(out).toContain('Ben\uFFFD[31m of "two\uFFFDlines"');
  });

  it('answers as JSON, and says nothing else on stdout', async () => {
    const { code, out, err } = await run('users list --page 2 --per-page 2 --json', { env });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ users: [{ uid: 'cleo' }], page: 2, total: 3 });
    expect(err).toBe('');
  });

  it('passes filters of the service on', async () => {
    await run('users list --filter sort=uid --filter created_at.gte=2026-01-01', { env });
    expect(service.received.of('list')[0]?.query).toMatchObject({
      sort: 'uid',
      'created_at.gte': '2026-01-01',
    });
  });

  it.each(['--page 0', '--per-page x', '--filter sort'])('refuses %s', async (option) => {
    const { code, err } = await run(`users list ${option}`, { env });
    expect(code).toBe(2);
    expect(err).toContain('It must be');
  });
});

describe('users find', () => {
  it('shows one user', async () => {
    const { code, out } = await run('users find ada', { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^uid +ada$/m);
  });

  it('reads all pages where the service ignores the filter', async () => {
    for (let n = 0; n < 250; n += 1) service.users.add({ uid: `u-${n}` });
    const { code, out } = await run('users find u-249', { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^uid +u-249$/m);
  });

  it('fails when there is none, without repeating the uid', async () => {
    const { code, out, err } = await run('users find dora --json', { env });
    expect(code).toBe(1);
    expect(JSON.parse(out)).toEqual({
      error: { code: 'ERR_DEBATE_SPACE_CLI_FAILED', message: 'The service lists no user of this uid.' },
    });
    expect(err).not.toContain('dora');
  });
});

describe('users export', () => {
  it('asks for users a hundred at a time, with the filters of the service', async () => {
    for (let n = 0; n < 247; n += 1) service.users.add({ uid: `u-${n}` });
    const { code, out } = await run('users export --filter sort=uid --columns uid', { env });
    expect(code).toBe(0);
    expect(out.trimEnd().split('\n')).toHaveLength(250);
    expect(service.received.of('list').map(({ query }) => query)).toEqual(
      ['1', '2', '3'].map((page) => ({ page, per_page: '100', sort: 'uid' })),
    );
  });

  it('has the fields of the service in CSV', async () => {
    const { out } = await run('users export --format csv', { env });
    expect(out.split('\n')[0]).toBe(
      'uid,full_name,first_name,last_name,email,image_url,created_at,id,contributions_count,more',
    );
  });

  it('fails with the error of the service, after the users that came before', async () => {
    for (let n = 0; n < 197; n += 1) service.users.add({ uid: `u-${n}` });
    service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    const { code, out, err } = await run('users export', { env });
    expect(code).toBe(4);
    expect(out).toContain('"uid":"u-96"');
    expect(out).not.toContain('"uid":"u-97"');
    expect(err).toContain('The answer on stdout is not complete.');
  });

  it('does not wait for an answer that is late when nobody reads any more', async () => {
    for (let n = 0; n < 197; n += 1) service.users.add({ uid: `u-${n}` });
    service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    service.faults.add({ operation: 'list', kind: 'latency', ms: 60_000 });
    const { code, closeStdout, err } = start('users export', { env });
    await service.received.waitFor('list', { count: 2 });
    closeStdout();
    expect(await code).toBe(1);
    expect(err()).toContain('stdout cannot be written (EPIPE): the answer is missing or incomplete.');
    expect(service.received.of('list')).toHaveLength(2);
  });

  it.each(['perPage=0', 'per_page=10'])('refuses the filter %s, and leaves no file', async (filter) => {
    const { code } = await run(`users export --filter ${filter} --out users.csv`, { env, folder });
    expect(code).toBe(2);
    expect(await readdir(folder)).toEqual([]);
    expect(service.received.all).toEqual([]);
  });

  it('writes NDJSON to stdout', async () => {
    const { code, out } = await run('users export', { env });
    expect(code).toBe(0);
    const users = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { uid: string });
    expect(users.map(({ uid }) => uid)).toEqual(['ada', 'ben', 'cleo']);
  });

  it('writes CSV to a new file that nobody else may read, and counts', async () => {
    const { code, out, err } = await run(
      'users export --format csv --columns uid,last_name --out u.csv --json',
      { env, folder },
    );
    const file = join(folder, 'u.csv');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ users: 3, file });
    expect(err).toContain('3 of 3');
    expect(await readFile(file, 'utf8')).toMatch(
      /^uid,last_name\r?\nada,Example\r?\nben,"of ""two\nlines"""\r?\ncleo,/,
    );
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('overwrites nothing', async () => {
    await run('users export --out users.ndjson', { env, folder });
    const { code, err } = await run('users export --out users.ndjson', { env, folder });
    expect(code).toBe(1);
    expect(err).toContain('users.ndjson exists; name another file');
    expect(await readFile(join(folder, 'users.ndjson'), 'utf8')).toContain('ada');
  });

  it.each([
    'users export --out users.csv',
    'users export --format csv --columns uid,uid --out users.csv',
    'users export --columns , --out users.csv',
    'users export --columns uid,,email --out users.csv',
    'users export --filter sort=uid --out users.csv',
  ])('leaves an existing file as it was: %s', async (command) => {
    await writeFile(join(folder, 'users.csv'), 'of last month');
    const { code } = await run(command, { env, folder });
    expect(code).toBeGreaterThan(0);
    expect(await readFile(join(folder, 'users.csv'), 'utf8')).toBe('of last month');
    expect(await readdir(folder)).toEqual(['users.csv']);
    expect(service.received.all).toEqual([]);
  });

  it('refuses wrong columns before it touches a file or the service', async () => {
    const { code, err } = await run('users export --columns uid,uid --out users.csv', { env, folder });
    expect(code).toBe(2);
    expect(err).toContain('It must be names of fields, each of them once.');
    expect(await readdir(folder)).toEqual([]);
    expect(service.received.all).toEqual([]);
  });

  it('says that a folder is missing before it asks the service', async () => {
    const { code, err } = await run('users export --out missing/users.csv', { env, folder });
    expect(code).toBe(1);
    expect(err).toContain('missing/users.csv cannot be written (ENOENT)');
    expect(service.received.all).toEqual([]);
  });

  it('leaves no half of a file behind', async () => {
    service.faults.add({ kind: 'latency', ms: 0, operation: 'list', times: 1 }); // asks how many there are
    service.faults.add({ kind: 'body', operation: 'list', body: { success: false } });
    const { code } = await run('users export --out users.ndjson', { env, folder });
    expect(code).toBe(4);
    expect(await readdir(folder)).toEqual([]);
  });

  it('stops when it is interrupted, and leaves no half of a file behind', async () => {
    for (let n = 0; n < 197; n += 1) service.users.add({ uid: `u-${n}` });
    service.faults.add({ kind: 'latency', ms: 0, operation: 'list', times: 2 });
    service.faults.add({ kind: 'latency', ms: 60_000, operation: 'list' });
    const { code, interrupt, err } = start('users export --out users.ndjson', { env, folder });
    await service.received.waitFor('list', { count: 3 });
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('Stopped after 100 users; no part of the export is kept.');
    expect(err()).toContain('Interrupted: run the command again.');
    expect(await readdir(folder)).toEqual([]);
  });

  it('does not mix CSV with --json', async () => {
    const { code, err } = await run('users export --format csv --json', { env });
    expect(code).toBe(2);
    expect(err).toContain('--out');
  });
});

describe('users orphans', () => {
  /** The accounts of all users but each fifth, in the file of this name. */
  async function with250Users(file: string, text: (uids: readonly string[]) => string): Promise<string[]> {
    for (const uid of ['ada', 'ben', 'cleo']) service.users.delete(uid);
    const uids = Array.from({ length: 250 }, (_, n) => `u-${n}`);
    for (const uid of uids) service.users.add({ uid, email: `${uid}@example.org` });
    await writeFile(join(folder, file), text(uids.filter((_, n) => n % 5 > 0)));
    return uids.filter((_, n) => n % 5 === 0);
  }
  const lists: [string, string, (uids: readonly string[]) => string][] = [
    [
      '--accounts a.csv --column id',
      'a.csv',
      (uids) => `name,id\n${uids.map((uid) => `N,${uid}\n`).join('')}`,
    ],
    ['--accounts a.ndjson', 'a.ndjson', (uids) => uids.map((uid) => `${JSON.stringify({ uid })}\n`).join('')],
    ['--accounts a --format lines', 'a', (uids) => uids.join('\n')],
  ];

  it.each(lists)('finds exactly the 50 of 250 users without an account: %s', async (options, file, text) => {
    const gone = await with250Users(file, text);
    const { code, out, err } = await run(`users orphans ${options}`, { env, folder });
    expect(code).toBe(0);
    expect(gone).toHaveLength(50);
    expect(out).toBe(`${gone.join('\n')}\n`);
    expect(err).toContain('200 of 250 | 40 without an account\n');
    expect(err).toContain('250 users with a uid, 50 of them without an account.');
    expect(service.received.of('list')).toHaveLength(4); // how many there are, and three pages
  });

  it.each([
    ['', 'orphans.txt'],
    [' --json', 'orphans.ndjson'],
  ])('gives with%s a list that erase --file takes, and erases exactly those', async (json, orphans) => {
    const gone = await with250Users('a.txt', (uids) => uids.join('\n'));
    const found = await run(`users orphans --accounts a.txt${json}`, { env, folder });
    await writeFile(join(folder, orphans), found.out);
    const erased = await run(`erase --file ${orphans} --mode delete --yes`, {
      env: { ...env, DEBATE_SPACE_RATE_LIMIT: 'off' },
      folder,
    });
    expect(erased.code).toBe(0);
    expect(gone.every((uid) => service.users.wasDeleted(uid))).toBe(true);
    expect(service.users.count).toBe(200);
  });

  it('answers with --json as one user a line, with what the service lists', async () => {
    await writeFile(join(folder, 'a.txt'), 'ben\ncleo\n');
    const { out } = await run('users orphans --accounts a.txt --json', { env, folder });
    expect(JSON.parse(out)).toMatchObject({ uid: 'ada', email: 'ada@example.org' });
  });

  it('takes the accounts from stdin', async () => {
    const piped = 'ada\ncleo\n';
    const { code, out } = await run('users orphans --accounts - --format lines', { env, piped });
    expect([code, out]).toEqual([0, 'ben\n']);
  });

  it('says nothing on stdout when everybody has an account', async () => {
    await writeFile(join(folder, 'a.txt'), 'ada\nben\ncleo\ndora\n');
    const { code, out, err } = await run('users orphans --accounts a.txt', { env, folder });
    expect([code, out]).toEqual([0, '']);
    expect(err).toContain('3 users with a uid, 0 of them without an account.');
  });

  it.each([
    ['an empty file', 'a.txt', '', 2, 'The list of accounts is empty'],
    ['a CSV with a header row only', 'a.csv', 'uid\n', 2, 'The list of accounts is empty'],
    ['an empty CSV', 'a.csv', '', 2, 'there is no header row'],
    ['another column', 'a.csv', 'id\nada\n', 2, 'name the column of the uids with --column'],
    ['a broken quote', 'a.csv', 'uid\nada\n"ben"x\n', 2, 'row 3 cannot be read'],
    ['a row without a uid', 'a.csv', 'name,uid\nA,ada\nB,\n', 2, 'row 3: the uid is empty'],
    ['an unknown format', 'a.xls', 'ada', 2, 'add --format'],
    ['another file', 'b.txt', 'ada', 1, 'a.txt cannot be read (ENOENT)'],
  ])('refuses %s before anything is requested', async (_what, file, text, exitCode, problem) => {
    await writeFile(join(folder, file), text);
    const accounts = file === 'b.txt' ? 'a.txt' : file;
    const { code, out, err } = await run(`users orphans --accounts ${accounts}`, { env, folder });
    expect([code, out]).toEqual([exitCode, '']);
    expect(err).toContain(problem);
    expect(err).not.toContain('ada');
    expect(service.received.all).toEqual([]);
  });

  it('refuses a list of other people, unless it is allowed', async () => {
    await writeFile(join(folder, 'a.txt'), 'Ada@example.org\n');
    const refused = await run('users orphans --accounts a.txt --json', { env, folder });
    expect(refused.code).toBe(2);
    expect(JSON.parse(refused.out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_NO_ACCOUNTS' } });
    expect(refused.err).toContain('add --allow-no-match');
    const allowed = await run('users orphans --accounts a.txt --allow-no-match', { env, folder });
    expect([allowed.code, allowed.out]).toEqual([0, 'ada\nben\ncleo\n']);
  });

  it('fails when damaged accounts are those of no user, whose users may be the orphans', async () => {
    service.users.add({ uid: ' dora' });
    await writeFile(join(folder, 'a.txt'), 'ada\nben \n dora\n9.0E+15\n');
    const { code, err } = await run('users orphans --accounts a.txt', { env, folder });
    expect(code).toBe(2);
    expect(err).toContain('Do not erase this list. Accounts look damaged, and are those of no user:');
    expect(err).toContain('\n  uid with a blank at its start or end, in rows 2\n');
    expect(err).toContain('\n  uid with a number in scientific notation, in rows 4\n');
    expect(err).not.toMatch(/ben|dora|9\.0/);
  });

  it('needs the accounts', async () => {
    const { code, err } = await run('users orphans', { env });
    expect(code).toBe(2);
    expect(err).toContain('--accounts <file>');
  });

  const ends: [string, number, string, (command: RunningCommand) => void | Promise<void>][] = [
    [
      'it is interrupted',
      5,
      'The answer on stdout is not complete.',
      ({ interrupt }) => {
        interrupt();
      },
    ],
    [
      'its reader has closed the pipe',
      1,
      '(EPIPE): the answer',
      ({ closeStdout }) => {
        closeStdout();
      },
    ],
    ['the service goes down', 4, 'The answer on stdout is not complete.', () => service.goDown()],
  ];
  it.each(ends)('does not look complete when %s in the middle', async (_what, exitCode, part, end) => {
    const gone = await with250Users('a.txt', (uids) => uids.join('\n'));
    service.faults.add({ kind: 'latency', ms: 0, operation: 'list', times: 2 });
    service.faults.add({ kind: 'latency', ms: 60_000, operation: 'list', times: 1 });
    const command = start('users orphans --accounts a.txt', { env, folder });
    await service.received.waitFor('list', { count: 3 });
    await end(command);
    expect(await command.code).toBe(exitCode);
    expect(command.out()).toContain(`${gone[0]}\n`);
    expect(command.err()).toContain(part);
    expect(command.err()).not.toContain('without an account.');
  });
});
