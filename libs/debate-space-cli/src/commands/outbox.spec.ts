import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { configuredFor, keys, run } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

describe('the logouts in the storage of an app', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-sqlite-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  let service: DebateSpaceSimulator;
  let env: NodeJS.ProcessEnv;
  beforeEach(async () => {
    service = await DebateSpaceSimulator.start({
      apiKey: keys.DEBATE_SPACE_API_KEY,
      secretKey: keys.DEBATE_SPACE_SECRET_KEY,
      users: [{ uid: 'ada' }, { uid: 'ben' }],
    });
    env = configuredFor(service, await sqliteFile(join(folder, 'debate-space.db')));
  });
  afterEach(async () => {
    await service.stop();
  });

  const answer = async (command: string): Promise<unknown> =>
    JSON.parse((await run(`${command} --json`, { env })).out);

  describe('what waits', () => {
    beforeEach(async () => {
      await run('logout ada --no-wait', { env });
    });

    it('is counted, and not sent', async () => {
      expect(await answer('outbox stats')).toMatchObject({
        engine: 'sqlite',
        pending: 1,
        parked: 0,
      });
      expect((await run('outbox stats', { env })).out).toMatch(/^pending +1, the oldest for \d+ s$/m);
      expect(service.received.all).toEqual([]);
    });

    it('is sent by a drain, which ends with 0 when nothing due is left', async () => {
      const { code, out, err } = await run('outbox drain', { env });
      expect([code, err]).toEqual([0, expect.stringContaining('without `erasure.beforeErase`')]);
      expect(out).toMatch(/^pending +0$/m);
      expect(service.received.logouts).toEqual(['ada']);
    });

    it('is still due when the time of a drain is over', async () => {
      service.faults.add({ kind: 'latency', ms: 60_000, operation: 'logout' });
      const { code, err } = await run('outbox drain --timeout 1', { env });
      expect([code, err]).toEqual([5, expect.stringContaining('Some of it is still due.')]);
    });

    it('is explained for a uid, which is not repeated', async () => {
      expect(await answer('outbox history ada')).toMatchObject([{ state: 'pending', reason: 'requested' }]);
      const { out } = await run('outbox history ada', { env });
      // The id is a number and a UUID, in which `ada` may stand by chance.
      expect(out).toMatch(
        /^ID +STATE +ENDED +FINISHED +TRIES +CAUSE +REASON\n\d+-[\da-f-]{36} {2}pending +[\dT:-]+Z +due [\dT:-]+Z +0 +– +requested\n$/,
      );
      expect((await run('outbox history ben', { env })).out).toBe('No logout of this user is known.\n');
    });
  });

  describe('what is parked', () => {
    let ids: string[];
    beforeEach(async () => {
      service.faults.add({ kind: 'status', status: 401, operation: 'logout' });
      for (const uid of ['ada', 'ben'])
        expect(await run(`logout ${uid} --execute-here`, { env })).toMatchObject({ code: 4 });
      service.faults.clear();
      ids = ((await answer('outbox parked')) as { id: string }[]).map(({ id }) => id);
    });

    it('is listed with its uid, cause and hint', async () => {
      expect(await answer('outbox parked --limit 1')).toMatchObject([
        { uid: 'ada', cause: '401', hint: expect.stringContaining('secretKey') },
      ]);
      const { out } = await run('outbox parked --skip 1', { env });
      expect(out).toMatch(
        /^ID +UID +ENDED +PARKED +TRIES +CAUSE +REASON\n\S+ {2}ben +\S+Z +\S+Z +1 +401 +requested\n {2}→ .*DEBATE_SPACE_SECRET_KEY/,
      );
    });

    it('is due again when it is retried, and sent by any process that delivers', async () => {
      expect(await answer(`outbox retry ${ids[0] ?? ''}`)).toEqual({ retried: 1 });
      expect(await answer('outbox retry --all')).toEqual({ retried: 1 });
      expect(await answer('outbox stats')).toMatchObject({ pending: 2, parked: 0 });
      expect(service.received.logouts).toEqual([]);
    });

    it('is given up when that is typed', async () => {
      expect(await run('outbox discard --all', { env })).toMatchObject({ code: 2 });
      expect(await run('outbox discard --all', { env, typed: 'discard' })).toMatchObject({ code: 1 });
      expect(await answer('outbox stats')).toMatchObject({ parked: 2 });
      const { code, err } = await run('outbox discard --all', { env, typed: 'discard 2' });
      expect(code).toBe(0);
      expect(err).toContain('2 logouts would never be sent');
      expect(await answer('outbox stats')).toMatchObject({ pending: 0, parked: 0 });
    });

    it('is given up by a script', async () => {
      expect(await answer(`outbox discard ${ids.join(' ')} --yes`)).toEqual({ discarded: 2 });
    });

    it.each([
      ['retry', 'retried'],
      ['discard --yes', 'discarded'],
    ])('is changed, and an id that is not parked is a failure: %s', async (command, changed) => {
      const { code, out, err } = await run(`outbox ${command} ${ids[0] ?? ''} some-id --json`, { env });
      expect(code).toBe(1);
      expect(JSON.parse(out)).toEqual({ [changed]: 1 });
      expect(err).toContain('1 id of no parked logout.');
    });

    it.each(['retry', 'discard --yes'])(
      'is chosen by ids or by --all, and not by both or neither: %s',
      async (command) => {
        expect(await run(`outbox ${command}`, { env })).toMatchObject({ code: 2 });
        expect(await run(`outbox ${command} --all some-id`, { env })).toMatchObject({ code: 2 });
        expect(await run(`outbox ${command} some-id`, { env })).toMatchObject({ code: 1 });
      },
    );
  });
});
