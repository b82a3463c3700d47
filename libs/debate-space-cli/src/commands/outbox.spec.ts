import { beforeEach, describe, expect, it } from '@jest/globals';
import { DebateSpaceErasures, DebateSpaceOutbox, DebateSpaceService } from 'nestjs-debate-space';
import { firstEvent, nextEvents } from '#support/hosts/events.js';
import { openDriver } from '../../../debate-space/src/storage/sqlite-file.js';
import { Scene } from '../testing/command-line.js';

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
const OPTIONS = {
  logout: { giveUpAfterMs: 20 * DAY_MS, historyRetentionMs: 20 * DAY_MS },
  erasure: { overdueAfterMs: [10 * DAY_MS], receiptRetentionMs: 10 * YEAR_MS, giveUpAfterMs: 9 * YEAR_MS },
};

const scene = new Scene();
let path: string;
beforeEach(async () => {
  path = await scene.useSqlite();
});

describe('a logout that waits in the storage of an app', () => {
  beforeEach(() => scene.run('logout ada --no-wait'));

  it('is counted and explained for a uid, which is not repeated, and not sent', async () => {
    const counts = { engine: 'sqlite', pending: 1, parked: 0 };
    expect(await scene.answer('outbox stats')).toMatchObject(counts);
    expect((await scene.run('outbox stats')).out).toMatch(/^pending +1, the oldest for \d+ s$/m);
    const entry = { state: 'pending', reason: 'requested' };
    expect(await scene.answer('outbox history ada')).toMatchObject([entry]);
    // The id is a number and a UUID, in which `ada` may stand by chance.
    expect((await scene.run('outbox history ada')).out).toMatch(
      /^ID +REASON +ENDED AT +.*STATE .*\n\d+-[\da-f-]{36} {2}requested +[\dT:-]+Z +0 +pending .*\n$/,
    );
    expect((await scene.run('outbox history ben')).out).toBe('No logout of this user is found.\n');
    expect(scene.service.received.all).toEqual([]);
  });

  it('is sent by a drain, which ends with 0 when nothing due is left', async () => {
    const { code, out, err } = await scene.run('outbox drain');
    expect([code, err, out]).toEqual([0, '', expect.stringMatching(/^pending +0$/m)]);
    expect(scene.service.received.logouts).toEqual(['ada']);
  });

  it('is still due when the time of a drain is over', async () => {
    scene.service.faults.add({ kind: 'latency', ms: 60_000, operation: 'logout' });
    const { code, err } = await scene.run('outbox drain --timeout 1');
    expect([code, err]).toEqual([5, expect.stringContaining('are still due.')]);
  });
});

describe('a drain beside an app with other options', () => {
  /** Changes what no app has open. */
  async function change(...texts: readonly string[]): Promise<void> {
    const driver = await openDriver(path);
    for (const text of texts) driver.exec(text);
    driver.close();
  }

  it.each([401, 400, 404])('does not park what the service refuses with %d', async (status) => {
    await scene.run('logout ada --no-wait');
    scene.service.faults.add({ kind: 'status', status, operation: 'logout' });
    for (let n = 0; n < 4; n += 1) {
      await scene.run('outbox drain');
      await change(`UPDATE debate_space_jobs SET due_at = 0 WHERE state = 'waiting'`);
    }
    expect(await scene.answer('outbox stats')).toMatchObject({ pending: 1, parked: 0 });
    const { code, err } = await scene.run('outbox drain');
    const said = status === 401 ? 'not delivered (401); your app tries it again' : '';
    expect([code, err]).toEqual([0, expect.stringContaining(said)]);
  });

  it('does not give up a logout of two days, nor prune a receipt of four years, nor report what is overdue', async () => {
    const first = await scene.startApp(OPTIONS);
    const finished = firstEvent(first, 'erasure-finished');
    await first.get(DebateSpaceErasures).request({ uid: 'cleo', mode: 'delete', reference: 'old' });
    await finished;
    await first.close();
    const web = await scene.startApp({ ...OPTIONS, worker: false });
    await web.get(DebateSpaceErasures).request({ uid: 'ben', mode: 'delete', reference: 'waiting' });
    await web.get(DebateSpaceService).logoutUser('ada');
    await web.close();
    const past = (column: string, ms: number) => `SET ${column} = ${column} - ${ms}`;
    await change(
      `UPDATE debate_space_jobs ${past('ended_at', 4 * YEAR_MS)} WHERE state = 'done'`,
      `UPDATE debate_space_jobs ${past('since', 2 * DAY_MS)} WHERE state = 'waiting'`,
      `UPDATE debate_space_references ${past('finished_at', 4 * YEAR_MS)} WHERE finished_at IS NOT NULL`,
      `UPDATE debate_space_references ${past('requested_at', 50 * DAY_MS)} WHERE finished_at IS NULL`,
    );
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'logout' });
    scene.service.faults.add({ kind: 'latency', ms: 2_000, operation: 'logout' });
    await scene.run('outbox drain --erasures --timeout 4');
    const beside = await scene.startApp({ ...OPTIONS, worker: false });
    expect(await beside.get(DebateSpaceOutbox).stats()).toMatchObject({ pending: 1, parked: 0 });
    expect(await scene.answers('erasures receipts old')).toHaveLength(1);
    const overdue = firstEvent(await scene.startApp(OPTIONS), 'erasure-overdue');
    expect(await overdue).toMatchObject({ reference: 'waiting' });
  });

  it('leaves erasures to the app, which may forbid them, unless --erasures is given', async () => {
    await scene.run('erase ben --mode delete --reference hold --yes --no-wait');
    expect(await scene.run('outbox drain')).toMatchObject({ code: 0 });
    expect(await scene.run('erase ada --mode delete --yes --execute-here')).toMatchObject({ code: 0 });
    expect(await scene.answer('erasures status hold')).toMatchObject({ waiting: 1, done: 0 });
    expect(scene.uids).toEqual(['ben', 'cleo']); // --execute-here erases the users of its own list only
    expect(await scene.run('outbox drain --erasures')).toMatchObject({ code: 0 });
    expect(await scene.answer('erasures status hold')).toMatchObject({ done: 1 });
  });
});

describe('a parked logout', () => {
  let ids: string[];
  beforeEach(async () => {
    scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout' });
    const running = await scene.startApp();
    const parked = nextEvents(running, 'logout-parked', 2);
    for (const uid of ['ada', 'ben']) await running.get(DebateSpaceService).logoutUser(uid);
    await parked;
    await running.close();
    scene.service.faults.clear();
    ids = ((await scene.answer('outbox parked')) as { id: string }[]).map(({ id }) => id);
  });

  it('is listed with its uid, cause and hint, and is due again when it is retried', async () => {
    const logout = { uid: 'ada', cause: '401', hint: expect.stringContaining('secretKey') };
    expect(await scene.answer('outbox parked --limit 1')).toMatchObject([logout]);
    expect((await scene.run('outbox parked --skip 1')).out).toMatch(
      /^ID +REASON +.*ATTEMPTS +CAUSE\n\S+ {2}requested +\S+Z +ben +.*1 +401\n {2}→ .*DEBATE_SPACE_SECRET_KEY/,
    );
    expect(await scene.answer(`outbox retry ${ids[0] ?? ''}`)).toEqual({ retried: 1 });
    expect(await scene.answer('outbox retry --all')).toEqual({ retried: 1 });
    expect(await scene.answer('outbox stats')).toMatchObject({ pending: 2, parked: 0 });
    expect(scene.service.received.logouts).toEqual([]);
  });

  it('is discarded when that is typed', async () => {
    expect(await scene.run('outbox discard --all')).toMatchObject({ code: 2 });
    expect(await scene.run('outbox discard --all', { typed: 'discard' })).toMatchObject({ code: 1 });
    expect(await scene.answer('outbox stats')).toMatchObject({ parked: 2 });
    const { code, err } = await scene.run('outbox discard --all', { typed: 'discard 2' });
    expect([code, err]).toEqual([0, expect.stringContaining('2 logouts would never be sent')]);
    expect(await scene.answer('outbox stats')).toMatchObject({ pending: 0, parked: 0 });
  });

  it.each([
    ['retry', 'retried'],
    ['discard --yes', 'discarded'],
  ])('is chosen by ids, each of which must be parked, or by --all: %s', async (command, changed) => {
    for (const [chosen, code] of [
      ['', 2],
      [' --all some-id', 2],
      [' some-id', 1],
    ] as const)
      expect([chosen, (await scene.run(`outbox ${command}${chosen}`)).code]).toEqual([chosen, code]);
    const missing = `No parked logout has such an id; one in the memory of a running app is ${changed} only there.`;
    expect((await scene.run(`outbox ${command} some-id`)).err).toContain(missing);
    const { code, out, err } = await scene.run(`outbox ${command} ${ids[0] ?? ''} some-id --json`);
    expect([code, JSON.parse(out)]).toEqual([1, { [changed]: 1 }]);
    expect(err).toContain('1 id not found among the parked logouts.');
    expect(await scene.answer(`outbox ${command} ${ids[1] ?? ''}`)).toEqual({ [changed]: 1 });
  });
});
