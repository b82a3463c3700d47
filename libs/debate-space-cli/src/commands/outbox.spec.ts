import { beforeEach, describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { Scene } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

describe('the logouts in the storage of an app', () => {
  const scene = new Scene();
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
      expect([code, err]).toEqual([0, expect.stringContaining('without `erasure.beforeErase`')]);
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

  describe('what is parked', () => {
    let ids: string[];
    beforeEach(async () => {
      scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout' });
      for (const uid of ['ada', 'ben'])
        expect(await scene.run(`logout ${uid} --execute-here`)).toMatchObject({ code: 4 });
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
