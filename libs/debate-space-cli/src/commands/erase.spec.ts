import { describe, expect, it, jest } from '@jest/globals';
import { DebateSpaceErasures, StorageError } from 'nestjs-debate-space';
import { Scene } from '../testing/command-line.js';

const scene = new Scene();

describe('erase', () => {
  it('deletes, waits until it is done, and answers with the counts', async () => {
    const { code, out, err } = await scene.run('erase ada nobody --mode delete --yes --json');
    const counts = { mode: 'delete', state: 'done', total: 2, done: 1, notFound: 1 };
    expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining(counts)]);
    expect(scene.uids).toEqual(['ben', 'cleo']);
    expect(err).toContain('2 of 2');
    expect(err).toContain('Not erased: 1 user not found.');
    expect(err + out).not.toMatch(/ada|nobody/);
  });

  it('anonymizes the users of a file', async () => {
    await scene.write('users.csv', 'id,email\nada,ada@example.org\nben,ben@example.org\n');
    const file = '--file users.csv --column id';
    const names = '--reference case-1 --requested-by desk';
    const { code, out } = await scene.run(`erase ${file} --mode anonymize ${names} --yes`);
    expect([code, scene.uids]).toEqual([0, ['cleo']]);
    expect(out).toMatch(/^reference +case-1\nmode +anonymize\n(.*\n)*requested by +desk\n/);
    expect(out).toMatch(/^total +2\ndone +2\n/m);
  });

  it('warns that it erases without the hooks of the app, unless nothing is erased', async () => {
    const warning = 'This command erases users itself, without calling `erasure.beforeErase` of your app.';
    expect((await scene.run('erase ada --mode delete --yes')).err).toContain(warning);
    const { err } = await scene.run('erase ben --mode delete', { typed: 'delete 1' });
    expect(err.indexOf(warning)).toBeLessThan(err.indexOf('Type "delete 1"'));
    expect(err).toContain(warning);
    expect((await scene.run('erase cleo --mode delete --dry-run')).err).not.toContain(warning);
  });

  it('reads stdin', async () => {
    const command = 'erase --file - --format lines --mode delete --yes';
    expect(await scene.run(command, { piped: 'ada\nben\n' })).toMatchObject({ code: 0 });
    expect(scene.uids).toEqual(['cleo']);
  });

  it.each(['--yes', '', '--dry-run'])('sends nothing when a line is no uid (%s)', async (option) => {
    await scene.write('users.csv', 'uid\nada\n..\n');
    const command = `erase --file users.csv --mode delete ${option}`.trim();
    const { code, err } = await scene.run(command, { typed: 'delete 1' });
    expect([code, err]).toEqual([2, expect.stringContaining('users.csv: line 3: the uid has a dot segment')]);
    expect(scene.service.received.all).toEqual([]);
  });

  it('counts in a dry run, and does nothing', async () => {
    await scene.write('users.csv', 'uid,name\nada,1\n\nada,1\nnobody,1\nben,2\n');
    const command = 'erase --file users.csv --mode delete --dry-run';
    const counts = { distinct: 3, known: 2, notFound: 1, notFoundLines: [5], alreadyRequested: 0 };
    expect(await scene.answer(command)).toEqual(counts);
    expect((await scene.run(command)).out).toMatch(/^not found lines +5$/m);
    expect(scene.uids).toHaveLength(3);
  });

  it('has no counts when the user list breaks off in the middle', async () => {
    for (let n = 0; n < 150; n += 1) scene.service.users.add({ uid: `u-${n}` });
    scene.service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    scene.service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    expect(await scene.run('erase u-149 --mode delete --dry-run')).toMatchObject({ code: 4, out: '' });
  });

  it.each([
    ['--dry-run', {}, 'No user was found; check'],
    ['', { typed: 'delete 1' }, '(1 not found: all of them)'],
    ['--yes', {}, 'No user was erased, because none was found; check'],
  ])('ends with 9, and says so, when nobody is found (%s)', async (option, terminal, part) => {
    const { code, err } = await scene.run(`erase nobody --mode delete ${option}`.trim(), terminal);
    expect([code, err]).toEqual([9, expect.stringContaining(part)]);
  });

  it('says what it will do, and does it when the verb and the number are typed', async () => {
    await scene.write('users.txt', 'ada\nnobody\n');
    const command = 'erase --file users.txt --mode delete --json';
    const { code, err, waitForStderr, type } = scene.start(command, { isTerminal: true });
    await waitForStderr('Type "delete 2" to proceed: ');
    const where = `"demo" at ${new URL(scene.service.url).host}`;
    const consequence = `2 users of ${where} will be deleted with all their contributions. This cannot be undone.`;
    expect(err()).toContain(`${consequence}\n(1 not found)`);
    await scene.write('users.txt', 'ben\ncleo\n'); // the users that were confirmed are erased
    type('delete 2');
    expect([await code, scene.uids]).toEqual([0, ['ben', 'cleo']]);
  });

  it.each(['yes', 'delete', 'delete 3', 'anonymize 2', ''])(
    'does nothing when "%s" is typed',
    async (typed) => {
      const { code, err } = await scene.run('erase ada ben --mode delete', { typed });
      expect([code, err]).toEqual([1, expect.stringContaining('Nothing was changed')]);
      expect(scene.uids).toHaveLength(3);
    },
  );

  it('changes nothing when it is interrupted at the question, or while it reads a list without an end', async () => {
    const asking = scene.start('erase ada --mode delete', { isTerminal: true });
    await asking.waitForStderr('Type');
    asking.interrupt();
    expect(await asking.code).toBe(5);
    expect(asking.err()).toContain('Nothing was changed');
    const reading = scene.start('erase --file - --format lines --mode delete --yes', { isTerminal: true });
    reading.type('ada');
    reading.interrupt();
    expect([await reading.code, scene.uids]).toEqual([5, ['ada', 'ben', 'cleo']]);
  });

  it.each([
    ['erase ada', '--mode'],
    ['erase ada --mode remove', 'Allowed choices are anonymize, delete.'],
    ['erase --mode delete', '--file'],
    ['erase ada --file users.csv --mode delete', '--file'],
    ['erase ada --format csv --mode delete', '--file'],
    ['erase --file users.txt --column id --mode delete', '--column'],
    ['erase --file - --mode delete --yes', '--format'],
    ['erase --file - --format csv --mode delete', '--yes'],
    ['erase ada --mode delete', '--yes'],
  ])('is refused: %s', async (command, part) => {
    const { code, err } = await scene.run(command);
    expect([code, err]).toEqual([2, expect.stringContaining(part)]);
    expect(scene.uids).toHaveLength(3);
  });

  it('says that it is unknown whether the list was stored when the storage does not answer', async () => {
    const failing = jest.spyOn(DebateSpaceErasures.prototype, 'requestMany');
    failing.mockRejectedValueOnce(new StorageError('Postgres failed (no answer)'));
    const { code, err } = await scene.run('erase ada --mode delete --reference case-1 --yes');
    failing.mockRestore();
    const how = 'To continue: the same command with --reference case-1; nobody is erased twice.';
    expect([code, err]).toEqual([
      3,
      expect.stringContaining(`It is unknown whether the list was stored. ${how}`),
    ]);
  });

  it('stops when it is interrupted, says how to go on, and goes on with the same reference', async () => {
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'delete' });
    const command = 'erase ada ben --mode delete --reference case-2 --yes --json';
    const { code, waitForStderr, interrupt, out, err } = scene.start(command);
    await waitForStderr('not done at the first attempt (503)');
    interrupt();
    expect(await code).toBe(5);
    expect(JSON.parse(out())).toMatchObject({ reference: 'case-2', waiting: 2 });
    expect(err()).toContain('To continue: the same command with --reference case-2');
    scene.service.faults.clear();
    expect(await scene.run(command)).toMatchObject({ code: 0 });
    expect(scene.uids).toEqual(['cleo']);
  });
});
