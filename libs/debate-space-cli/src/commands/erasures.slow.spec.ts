import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DebateSpaceErasures, type ErasureReceipt } from 'nestjs-debate-space';
import { run, Scene, type RunningCommand } from '../testing/command-line.js';

const scene = new Scene();
const LIST = 'erase ada ben --mode delete --reference case-1 --yes';
beforeEach(() => scene.useSqlite());

/** Waits until the command says this, and interrupts it. @returns how it ended, and what it said */
async function interrupted(command: RunningCommand, text: string): Promise<[number, string]> {
  await command.waitForStderr(text);
  command.interrupt();
  return [await command.code, command.err()];
}

describe('an erasure that was left to the app', () => {
  it('is noted and listed, the newest first; nothing is sent, also by a command that is not confirmed', async () => {
    expect(await scene.run(`${LIST} --no-wait`)).toMatchObject({ code: 0 });
    await scene.run('erase cleo --mode anonymize --reference case-2 --no-wait --yes');
    expect(await scene.run('erase cleo --mode delete', { typed: 'no' })).toMatchObject({ code: 1 });
    const noted = { total: 2, waiting: 2, complete: true };
    expect(await scene.answer('erasures status case-1')).toMatchObject(noted);
    expect((await scene.run('erasures status case-1')).out).toMatch(/^waiting +2$/m);
    expect(await scene.answers('erasures list')).toMatchObject([
      { reference: 'case-2' },
      { reference: 'case-1' },
    ]);
    expect((await scene.run('erasures list')).out).toMatch(/delete +waiting +0 of 2 +case-1$/m);
    expect(scene.service.received.of('delete')).toEqual([]);
  });

  it('can be paused, resumed, retried and, when that is typed or --yes is given, canceled', async () => {
    await scene.run(`${LIST} --no-wait`);
    for (const [command, state] of [
      ['pause', 'paused'],
      ['resume', 'waiting'],
      ['retry', 'waiting'],
    ])
      expect(await scene.answer(`erasures ${command} case-1`)).toMatchObject({ state, failed: 0 });
    expect(await scene.run('erasures cancel case-1')).toMatchObject({ code: 2 });
    expect(await scene.run('erasures cancel case-1', { typed: 'no' })).toMatchObject({ code: 1 });
    const { code, err } = await scene.run('erasures cancel case-1', { typed: 'cancel 2' });
    expect([code, err]).toEqual([0, expect.stringContaining('2 users of case-1 would not be erased')]);
    expect(await scene.answer('erasures status case-1')).toMatchObject({ state: 'canceled', canceled: 2 });
    expect((await scene.run('erasures list')).out).toMatch(/canceled +0 of 2, 2 canceled +case-1$/m);
    await scene.run('erase cleo --mode delete --reference case-2 --yes --no-wait');
    expect(await scene.answer('erasures cancel case-2 --yes')).toMatchObject({ canceled: 1 });
  });

  it('is only watched by the command, which says so when it is interrupted, and what becomes of it', async () => {
    const watch = 'erasures status case-1 --watch';
    const continues = '2 users not erased yet. This command only watched: your app continues to erase them.';
    const said = `${continues} To stop that: npx debate-space erasures pause case-1 (or cancel).`;
    for (const [command, text] of [
      [LIST, 'this command only watches'],
      [watch, '0 of 2'],
    ] as const) {
      const [code, err] = await interrupted(scene.start(command), text);
      expect([code, err]).toEqual([5, expect.stringContaining(said)]);
      expect(err).not.toContain('Stopped');
    }
    await scene.run('erasures pause case-1');
    const [, err] = await interrupted(scene.start(watch), '0 of 2');
    expect(err).toContain('They are paused. To continue: npx debate-space erasures resume case-1');
    expect(scene.service.received.count).toBe(0);
    expect(await scene.run(`${LIST} --no-wait --execute-here`)).toMatchObject({ code: 2 });
  });

  it('can be executed here by the same command, watched from elsewhere, and proven by receipts', async () => {
    await scene.run(`${LIST} --no-wait`);
    const watching = scene.start('erasures status case-1 --watch --json');
    await watching.waitForStderr('0 of 2');
    expect(await scene.run(`${LIST} --execute-here`)).toMatchObject({ code: 0 });
    expect(await watching.code).toBe(0);
    expect(JSON.parse(watching.out())).toMatchObject({ state: 'done', done: 2 });
    expect(scene.uids).toEqual(['cleo']);
    expect((await scene.run('erasures list')).out).toMatch(/delete +done +2 of 2 +case-1$/m);
    const receipt = { reference: 'case-1', mode: 'delete', outcome: 'erased', status: 200, loggedOut: true };
    const receipts = await scene.answers('erasures receipts case-1');
    expect(receipts).toMatchObject([receipt, receipt]);
    expect(JSON.stringify(receipts)).not.toMatch(/ada|ben/);
    const { out } = await scene.run('erasures receipts --uid ada');
    expect(out).toMatch(/^DONE .*\n\S+ {2}delete +erased +200 +1× +\S+ {2}case-1\n$/);
    const none = { code: 0, out: '', err: 'There are no receipts.\n' };
    expect(await scene.run('erasures receipts --uid cleo')).toEqual(none);
    for (const both of ['', ' case-1 --uid ada'])
      expect(await scene.run(`erasures receipts${both}`)).toMatchObject({ code: 2 });
  });
});

it('a receipt shows that the user may be erased although it says vetoed or canceled', async () => {
  const at = new Date(0);
  const receipt: ErasureReceipt = {
    ...{ reference: 'case-1', mode: 'delete', subject: 'hash', requestedAt: at, doneAt: at, attempts: 1 },
    ...{ outcome: 'canceled', loggedOut: true, uncertain: true },
  };
  const receipts = jest.spyOn(DebateSpaceErasures.prototype, 'receipts');
  receipts.mockImplementation(async function* () {
    yield await Promise.resolve(receipt);
  });
  const { out } = await scene.run('erasures receipts case-1');
  receipts.mockRestore();
  expect(out).toMatch(/ delete +canceled, uncertain +– +1× +hash +case-1\n$/);
});

describe('an erasure of which some users are not erased', () => {
  it('says why nothing is done while the service is down, and when it is tried again', async () => {
    await scene.service.goDown();
    await scene.startApp();
    const [code, err] = await interrupted(scene.start(LIST), 'not done at the first attempt (');
    expect(code).toBe(5);
    const { out } = await scene.run('erasures status case-1');
    expect(out).toMatch(/^last failure +\S.*; (next attempt in \d+ s|the next attempt is due)$/m);
    expect(out).toMatch(/^state +(running|waiting)$/m);
    const status = (await scene.answer('erasures status case-1')) as { retrying?: { cause: string } };
    expect(err).toContain(`not done at the first attempt (${status.retrying?.cause})`);
  });

  it('ends with 7 when the app vetoed them', async () => {
    const beforeErase = ({ uid }: { uid: string }) => (uid === 'ben' ? { veto: 'legal hold' } : undefined);
    await scene.startApp({ erasure: { beforeErase } });
    const { code, out, err } = await scene.run(`${LIST} --json`);
    expect([code, JSON.parse(out)]).toMatchObject([7, { state: 'done', done: 1, vetoed: 1 }]);
    expect(err).toContain('Not erased: 1 user vetoed by erasure.beforeErase.');
    expect(await scene.run('erasures status case-1 --watch')).toMatchObject({ code: 7 });
    expect(await scene.run('erasures status case-1')).toMatchObject({ code: 0 });
  });

  it('ends with 8 when it was canceled', async () => {
    const erasing = scene.start(LIST);
    await erasing.waitForStderr('this command only watches');
    const watching = scene.start('erasures status case-1 --watch');
    await watching.waitForStderr('0 of 2');
    await scene.run('erasures cancel case-1 --yes');
    expect([await erasing.code, await watching.code]).toEqual([8, 8]);
    expect(watching.err()).not.toContain('2 of 2');
    expect(erasing.err()).toContain('Not erased: 2 users canceled.');
  });
});

it('an unknown reference is a failure that says so', async () => {
  const { code, out } = await scene.run('erasures status case-9 --json');
  const unknown = { error: { code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE' } };
  expect([code, JSON.parse(out)]).toMatchObject([1, unknown]);
  expect(out).toContain('see: npx debate-space erasures list');
  expect(out).not.toContain('DebateSpaceErasures');
  expect(await scene.run('erasures retry case-9')).toMatchObject({ code: 1 });
});

it('without the storage of the app there is nothing to see, and the hint is named', async () => {
  const { code, err } = await run('erasures list', { env: { ...scene.env, DEBATE_SPACE_STORAGE: '' } });
  const hint = 'set DEBATE_SPACE_STORAGE to sqlite:<file>, or to the URL of its Postgres, MySQL or MariaDB';
  expect([code, err]).toEqual([3, expect.stringContaining(hint)]);
});
