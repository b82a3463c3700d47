import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { join } from 'node:path';
import {
  DebateSpaceErasures,
  DebateSpaceModule,
  DebateSpaceOutbox,
  DebateSpaceService,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { firstEvent, nextEvents } from '#support/hosts/events.js';
import { openDriver } from '../../../debate-space/src/storage/sqlite-file.js';
import { settingsOf } from '../settings.js';
import { Scene } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
const DAY_OPTIONS = { logout: { giveUpAfterMs: 20 * DAY_MS, historyRetentionMs: 20 * DAY_MS } };
const YEAR_OPTIONS = {
  erasure: { overdueAfterMs: [10 * DAY_MS], receiptRetentionMs: 10 * YEAR_MS, giveUpAfterMs: 9 * YEAR_MS },
};

describe('the logouts in the storage of an app', () => {
  const scene = new Scene();
  const apps: INestApplicationContext[] = [];
  afterEach(async () => {
    for (const running of apps.splice(0)) await running.close();
  });

  /** Starts the app, with its own options, on the storage that the command line uses. */
  async function app(options: Partial<DebateSpaceModuleOptions> = {}): Promise<INestApplicationContext> {
    const path = (scene.env.DEBATE_SPACE_STORAGE ?? '').replace('sqlite:', '');
    const { settings } = { settings: settingsOf(scene.env, scene.folder).options };
    const module = DebateSpaceModule.forRoot({ ...settings, storage: sqliteStorage({ path }), ...options });
    const running = await NestFactory.createApplicationContext(module, { logger: false });
    apps.push(running);
    return running;
  }
  beforeEach(async () => {
    Object.assign(scene.env, await sqliteFile(join(scene.folder, 'debate-space.db')));
  });

  describe('what waits', () => {
    beforeEach(async () => {
      await scene.run('logout ada --no-wait');
    });

    it('is counted, and not sent', async () => {
      expect(await scene.answer('outbox stats')).toMatchObject({
        engine: 'sqlite',
        pending: 1,
        parked: 0,
      });
      expect((await scene.run('outbox stats')).out).toMatch(/^pending +1, the oldest for \d+ s$/m);
      expect(scene.service.received.all).toEqual([]);
    });

    it('is sent by a drain, which ends with 0 when nothing due is left', async () => {
      const { code, out, err } = await scene.run('outbox drain');
      expect([code, err]).toEqual([0, '']);
      expect(out).toMatch(/^pending +0$/m);
      expect(scene.service.received.logouts).toEqual(['ada']);
    });

    it('is still due when the time of a drain is over', async () => {
      scene.service.faults.add({ kind: 'latency', ms: 60_000, operation: 'logout' });
      const { code, err } = await scene.run('outbox drain --timeout 1');
      expect([code, err]).toEqual([5, expect.stringContaining('Some of it is still due.')]);
    });

    it('is explained for a uid, which is not repeated', async () => {
      expect(await scene.answer('outbox history ada')).toMatchObject([
        { state: 'pending', reason: 'requested' },
      ]);
      const { out } = await scene.run('outbox history ada');
      // The id is a number and a UUID, in which `ada` may stand by chance.
      expect(out).toMatch(
        /^ID +REASON +ENDED AT +.*STATE .*\n\d+-[\da-f-]{36} {2}requested +[\dT:-]+Z +0 +pending .*\n$/,
      );
      expect((await scene.run('outbox history ben')).out).toBe('No logout of this user is found.\n');
    });
  });

  describe('a drain beside an app with other options', () => {
    /** Changes what no app has open. */
    async function change(...texts: readonly string[]): Promise<void> {
      const driver = await openDriver((scene.env.DEBATE_SPACE_STORAGE ?? '').replace('sqlite:', ''));
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
      expect(await scene.run('outbox drain')).toMatchObject({
        code: 0,
        err:
          status === 401
            ? expect.stringContaining('not delivered (401); your app tries it again')
            : expect.any(String),
      });
    });

    it('does not give up a logout of two days, nor prune a receipt of four years, nor report what is overdue', async () => {
      const first = await app({ ...DAY_OPTIONS, ...YEAR_OPTIONS });
      const finished = firstEvent(first, 'erasure-finished');
      await first.get(DebateSpaceErasures).request({ uid: 'cleo', mode: 'delete', reference: 'old' });
      await finished;
      await first.close();
      const web = await app({ ...DAY_OPTIONS, ...YEAR_OPTIONS, worker: false });
      await web.get(DebateSpaceErasures).request({ uid: 'ben', mode: 'delete', reference: 'waiting' });
      await web.get(DebateSpaceService).logoutUser('ada');
      await web.close();
      const past = (column: string, ms: number) =>
        `UPDATE debate_space_jobs SET ${column} = ${column} - ${ms}`;
      await change(
        `${past('ended_at', 4 * YEAR_MS)} WHERE state = 'done'`,
        `${past('since', 2 * DAY_MS)} WHERE state = 'waiting'`,
        `${past('finished_at', 4 * YEAR_MS).replace('jobs', 'references')} WHERE finished_at IS NOT NULL`,
        `${past('requested_at', 50 * DAY_MS).replace('jobs', 'references')} WHERE finished_at IS NULL`,
      );
      scene.service.faults.add({ kind: 'status', status: 503, operation: 'logout' });
      scene.service.faults.add({ kind: 'latency', ms: 2_000, operation: 'logout' });
      await scene.run('outbox drain --erasures --timeout 4');
      const beside = await app({ ...DAY_OPTIONS, ...YEAR_OPTIONS, worker: false });
      expect(await beside.get(DebateSpaceOutbox).stats()).toMatchObject({ pending: 1, parked: 0 });
      const receipts = [];
      for await (const receipt of beside.get(DebateSpaceErasures).receipts('old')) receipts.push(receipt);
      expect(receipts).toHaveLength(1);
      const overdue = firstEvent(await app({ ...DAY_OPTIONS, ...YEAR_OPTIONS }), 'erasure-overdue');
      expect(await overdue).toMatchObject({ reference: 'waiting' });
    });

    it('leaves erasures to the app, which may forbid them, unless --erasures is given', async () => {
      await scene.run('erase ben --mode delete --reference hold --yes --no-wait');
      expect(await scene.run('outbox drain')).toMatchObject({ code: 0 });
      expect(scene.service.received.of('delete')).toEqual([]);
      expect(await scene.answer('erasures status hold')).toMatchObject({ waiting: 1, done: 0 });
      expect(await scene.run('outbox drain --erasures')).toMatchObject({ code: 0 });
      expect(await scene.answer('erasures status hold')).toMatchObject({ done: 1 });
    });

    it('erases with --execute-here the users of its own list only', async () => {
      await scene.run('erase ben --mode delete --reference hold --yes --no-wait');
      expect(await scene.run('erase ada --mode delete --yes --execute-here')).toMatchObject({ code: 0 });
      expect(await scene.answer('erasures status hold')).toMatchObject({ waiting: 1, done: 0 });
      expect(scene.uids).toEqual(['ben', 'cleo']);
    });
  });

  describe('what is parked', () => {
    let ids: string[];
    beforeEach(async () => {
      scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout' });
      const running = await app();
      const parked = nextEvents(running, 'logout-parked', 2);
      for (const uid of ['ada', 'ben']) await running.get(DebateSpaceService).logoutUser(uid);
      await parked;
      await running.close();
      scene.service.faults.clear();
      ids = ((await scene.answer('outbox parked')) as { id: string }[]).map(({ id }) => id);
    });

    it('is listed with its uid, cause and hint', async () => {
      expect(await scene.answer('outbox parked --limit 1')).toMatchObject([
        { uid: 'ada', cause: '401', hint: expect.stringContaining('secretKey') },
      ]);
      const { out } = await scene.run('outbox parked --skip 1');
      expect(out).toMatch(
        /^ID +REASON +.*ATTEMPTS +CAUSE\n\S+ {2}requested +\S+Z +ben +.*1 +401\n {2}→ .*DEBATE_SPACE_SECRET_KEY/,
      );
    });

    it('is due again when it is retried, and sent by any process that delivers', async () => {
      expect(await scene.answer(`outbox retry ${ids[0] ?? ''}`)).toEqual({ retried: 1 });
      expect(await scene.answer('outbox retry --all')).toEqual({ retried: 1 });
      expect(await scene.answer('outbox stats')).toMatchObject({ pending: 2, parked: 0 });
      expect(scene.service.received.logouts).toEqual([]);
    });

    it('is given up when that is typed', async () => {
      expect(await scene.run('outbox discard --all')).toMatchObject({ code: 2 });
      expect(await scene.run('outbox discard --all', { typed: 'discard' })).toMatchObject({ code: 1 });
      expect(await scene.answer('outbox stats')).toMatchObject({ parked: 2 });
      const { code, err } = await scene.run('outbox discard --all', { typed: 'discard 2' });
      expect(code).toBe(0);
      expect(err).toContain('2 logouts would never be sent');
      expect(await scene.answer('outbox stats')).toMatchObject({ pending: 0, parked: 0 });
    });

    it('is given up by a script', async () => {
      expect(await scene.answer(`outbox discard ${ids.join(' ')} --yes`)).toEqual({ discarded: 2 });
    });

    it.each([
      ['retry', 'retried'],
      ['discard --yes', 'discarded'],
    ])('is changed, and an id that is not parked is a failure: %s', async (command, changed) => {
      const { code, out, err } = await scene.run(`outbox ${command} ${ids[0] ?? ''} some-id --json`);
      expect(code).toBe(1);
      expect(JSON.parse(out)).toEqual({ [changed]: 1 });
      expect(err).toContain('1 id not found among the parked logouts.');
    });

    it.each(['retry', 'discard --yes'])(
      'is chosen by ids or by --all, and not by both or neither: %s',
      async (command) => {
        expect(await scene.run(`outbox ${command}`)).toMatchObject({ code: 2 });
        expect(await scene.run(`outbox ${command} --all some-id`)).toMatchObject({ code: 2 });
        expect(await scene.run(`outbox ${command} some-id`)).toMatchObject({ code: 1 });
      },
    );
  });
});
