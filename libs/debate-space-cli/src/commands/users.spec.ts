import { describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Scene } from '../testing/command-line.js';

const scene = new Scene();
const add = (count: number): string[] => {
  const uids = Array.from({ length: count }, (_, n) => `u-${n}`);
  for (const uid of uids) scene.service.users.add({ uid });
  return uids;
};

describe('users list', () => {
  it('shows one page, and how to see the next', async () => {
    scene.service.users.add({ uid: 'dora', first_name: 'Dora', last_name: 'of "two\nlines"\u001b[31m' });
    const { code, out } = await scene.run('users list --per-page 2 --page 2');
    expect(code).toBe(0);
    expect(out).toMatch(/^UID +NAME +EMAIL +CREATED\ncleo .*\ndora +Dora of "two\uFFFDlines"\uFFFD\[31m/);
    expect(out).toContain('page 2 of 2, 4 users in all');
    expect((await scene.run('users list --per-page 2')).out).toContain('; next: --page 2');
  });

  it('answers as JSON, and says nothing else', async () => {
    const { code, out, err } = await scene.run('users list --page 2 --per-page 2 --json');
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({ users: [{ uid: 'cleo' }], page: 2, total: 3 });
  });

  it('passes filters of the service on', async () => {
    await scene.run('users list --filter sort=uid --filter created_at.gte=2026-01-01');
    const query = { sort: 'uid', 'created_at.gte': '2026-01-01' };
    expect(scene.service.received.of('list')[0]?.query).toMatchObject(query);
  });

  it.each(['--page 0', '--per-page x', '--filter sort'])(
    'refuses %s, and requests nothing',
    async (option) => {
      const { code, err } = await scene.run(`users list ${option}`);
      expect([code, err]).toEqual([2, expect.stringMatching(/must be (a whole number from 1|name=value)/)]);
      expect(scene.service.received.all).toEqual([]);
    },
  );

  it('says that it cannot reach the service, and what to check', async () => {
    await scene.service.goDown();
    const err = 'Cannot reach the debate space (ECONNREFUSED). Check DEBATE_SPACE_AUTH_URL';
    expect(await scene.run('users list')).toMatchObject({ code: 4, err: expect.stringContaining(err) });
  });
});

describe('users find', () => {
  it('shows one user, from whatever page', async () => {
    add(250);
    const { code, out } = await scene.run('users find u-249');
    expect([code, out]).toEqual([0, expect.stringMatching(/^uid +u-249$/m)]);
  });

  it('fails when there is none, without repeating the uid', async () => {
    const { code, out, err } = await scene.run('users find dora --json');
    const message = 'The user is not found: the service lists no user of this uid.';
    expect([code, JSON.parse(out)]).toEqual([1, { error: { code: 'ERR_DEBATE_SPACE_CLI_FAILED', message } }]);
    expect(err).not.toContain('dora');
  });
});

/** Lists this many pages, and answers the next ones a minute late. */
function holdPagesAfter(pages: number): void {
  scene.service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: pages });
  scene.service.faults.add({ operation: 'list', kind: 'latency', ms: 60_000 });
}

describe('users export', () => {
  it('asks for users a hundred at a time, with the filters of the service', async () => {
    add(247);
    const { code, out } = await scene.run('users export --filter sort=uid --columns uid');
    expect(code).toBe(0);
    expect(out.trimEnd().split('\n')).toHaveLength(250);
    expect(scene.service.received.of('list').map(({ query }) => query)).toEqual(
      ['1', '2', '3'].map((page) => ({ page, per_page: '100', sort: 'uid' })),
    );
  });

  it('writes CSV to a new file, counts, and overwrites nothing', async () => {
    const command = 'users export --format csv --columns uid,email --out u.csv';
    const { code, out, err } = await scene.run(`${command} --json`);
    const file = join(scene.folder, 'u.csv');
    expect([code, JSON.parse(out)]).toEqual([0, { users: 3, file }]);
    expect(err).toContain('3 of 3');
    expect(await readFile(file, 'utf8')).toMatch(/^uid,email\nada,.*\nben,.*\ncleo,.*\n$/);
    const again = await scene.run(command);
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('u.csv exists; name another file') });
  });

  it('fails with the error of the service, after the users that came before', async () => {
    add(197);
    scene.service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    scene.service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    const { code, out, err } = await scene.run('users export');
    expect([code, err]).toEqual([4, expect.stringContaining('The answer on stdout is not complete.')]);
    expect(out).toMatch(/"uid":"u-96".*\n$/);
  });

  it('does not wait for an answer that is late when nobody reads any more', async () => {
    add(197);
    holdPagesAfter(1);
    const { code, closeStdout, err } = scene.start('users export');
    await scene.service.received.waitFor('list', { count: 2 });
    closeStdout();
    expect(await code).toBe(1);
    expect(err()).toContain('stdout cannot be written (EPIPE): the answer is missing or incomplete.');
  });

  it.each([
    ['--filter per_page=10 --out u.csv', 2],
    ['--format csv --columns uid,uid --out u.csv', 2],
    ['--columns uid,,email --out u.csv', 2],
    ['--format csv --json', 2],
    ['--format xml', 2],
    ['--out missing/u.csv', 1],
  ])('refuses %s, requests nothing and leaves no file', async (options, code) => {
    expect(await scene.run(`users export ${options}`)).toMatchObject({ code });
    expect(await readdir(scene.folder)).toEqual([]);
    expect(scene.service.received.all).toEqual([]);
  });

  it('stops when it is interrupted, and leaves no half of a file behind', async () => {
    add(197);
    holdPagesAfter(2);
    const { code, interrupt, err } = scene.start('users export --out users.ndjson');
    await scene.service.received.waitFor('list', { count: 3 });
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('Stopped after 100 users; no part of the export is kept.');
    expect(await readdir(scene.folder)).toEqual([]);
  });
});

describe('users orphans', () => {
  /** Writes the accounts of all users but each fifth. @returns the others */
  async function with250Users(): Promise<string[]> {
    for (const uid of ['ada', 'ben', 'cleo']) scene.service.users.delete(uid);
    const uids = add(250);
    const accounts = uids.filter((_, n) => n % 5 > 0);
    await scene.write('a.csv', `name,id\n${accounts.map((uid) => `N,${uid}\n`).join('')}`);
    return uids.filter((_, n) => n % 5 === 0);
  }
  const command = 'users orphans --accounts a.csv --column id';

  it('finds exactly the users without an account, as a list that erase --file takes', async () => {
    const gone = await with250Users();
    const { code, out, err } = await scene.run(command);
    expect([code, out]).toEqual([0, `${gone.join('\n')}\n`]);
    expect(err).toContain('200 of 250 | 40 without an account\n');
    expect(err).toContain('250 users with a uid, 50 of them without an account.');
    await scene.write('orphans.txt', out);
    const erased = await scene.run('erase --file orphans.txt --mode delete --yes');
    expect([erased.code, scene.service.users.count]).toEqual([0, 200]);
    expect(gone.every((uid) => scene.service.users.wasDeleted(uid))).toBe(true);
  });

  it('prints the very uids, whatever is in them, and erase --file reads them back', async () => {
    for (const uid of [' ada ', "'@bob", '=cmd', 'a,b', '"', 'Zoë 🦊']) scene.service.users.add({ uid });
    await scene.write('a.txt', 'ada\nben\ncleo\n');
    scene.service.users.add({ uid: '\uFEFFben' }); // a reader would take this for a byte order mark
    const { out, err } = await scene.run('users orphans --accounts a.txt');
    expect(err).toContain('Left out: 1 user whose uid cannot stand in a list.');
    await scene.write('orphans.txt', out);
    expect(await scene.run('erase --file orphans.txt --mode delete --yes')).toMatchObject({ code: 0 });
    expect(scene.uids).toEqual(['ada', 'ben', 'cleo', '\uFEFFben']);
  });

  it('answers with --json as one user a line, and takes the accounts from stdin', async () => {
    const stdin = 'users orphans --accounts - --format lines --json';
    const { out } = await scene.run(stdin, { piped: 'ada\ncleo\n' });
    expect(JSON.parse(out)).toMatchObject({ uid: 'ben', created_at: expect.any(String) });
  });

  it.each([
    ['an empty file', ''],
    ['a row without a uid', 'name,id\nA,ada\nB,\n'],
    ['another column', 'name,uid\nA,ada\n'],
  ])('refuses %s before anything is requested', async (_what, text) => {
    await scene.write('a.csv', text);
    expect(await scene.run(command)).toMatchObject({ code: 2, out: '' });
    expect(scene.service.received.all).toEqual([]);
  });

  it('refuses a list of other people, unless it is allowed', async () => {
    await scene.write('a.csv', 'id\nAda@example.org\n');
    const { code, out, err } = await scene.run(`${command} --json`);
    expect([code, err]).toEqual([2, expect.stringContaining('add --allow-no-match')]);
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_NO_ACCOUNTS' } });
    const allowed = await scene.run(`${command} --allow-no-match`);
    expect(allowed).toMatchObject({ code: 0, out: 'ada\nben\ncleo\n' });
  });

  it.each([
    ['it is interrupted', 'interrupt', 5, 'The answer on stdout is not complete.'],
    ['its reader has closed the pipe', 'closeStdout', 1, '(EPIPE): the answer'],
  ] as const)('does not look complete when %s in the middle', async (_what, end, exitCode, part) => {
    const [first] = await with250Users();
    holdPagesAfter(2);
    const running = scene.start(command);
    await scene.service.received.waitFor('list', { count: 3 });
    running[end]();
    expect(await running.code).toBe(exitCode);
    expect(running.out()).toContain(`${first ?? ''}\n`);
    expect(running.err()).toContain(part);
    expect(running.err()).not.toContain('without an account.');
  });
});
