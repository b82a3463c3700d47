import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { join } from 'node:path';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { keys, run, Scene } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

describe('the erasures in the storage of an app', () => {
  const scene = new Scene();
  beforeEach(async () => {
    Object.assign(scene.env, await sqliteFile(join(scene.folder, 'debate-space.db')));
  });

  /** An app that shares the storage with the commands. */
  const startApp = (erasure?: DebateSpaceModuleOptions['erasure']): Promise<INestApplicationContext> =>
    NestFactory.createApplicationContext(
      DebateSpaceModule.forRoot({
        apiKey: keys.DEBATE_SPACE_API_KEY,
        secretKey: keys.DEBATE_SPACE_SECRET_KEY,
        applicationName: scene.service.applicationName,
        authUrl: scene.service.url,
        storage: sqliteStorage({ path: join(scene.folder, 'debate-space.db') }),
        erasure,
      }),
      { logger: false },
    );

  describe('an erasure that was left to the app', () => {
    beforeEach(async () => {
      const { code } = await scene.run('erase ada ben --mode delete --reference case-1 --no-wait --yes');
      expect(code).toBe(0);
    });

    it('is noted, and nothing is sent', async () => {
      expect(await scene.answer('erasures status case-1')).toMatchObject({
        total: 2,
        waiting: 2,
        complete: true,
      });
      const { out } = await scene.run('erasures status case-1');
      expect(out).toMatch(/^waiting +2$/m);
      expect(scene.service.received.all).toEqual([]);
    });

    it('is not said to run when it has begun and no process works on it', async () => {
      await scene.service.goDown();
      const working = scene.start('erase ada ben --mode delete --reference case-1 --execute-here --yes');
      await working.waitForStderr('not done at the first attempt');
      working.interrupt();
      await working.code;
      const { out } = await scene.run('erasures status case-1');
      expect(out).toMatch(/^state +(running|waiting)$/m);
    });

    it('is not carried out by a command that is not confirmed', async () => {
      expect(await scene.run('erase cleo --mode delete', { typed: 'no' })).toMatchObject({ code: 1 });
      expect(await scene.answer('erasures status case-1')).toMatchObject({ waiting: 2 });
      expect(scene.service.received.of('delete')).toEqual([]);
    });

    it('is listed with the others, the newest first', async () => {
      await scene.run('erase cleo --mode anonymize --reference case-2 --no-wait --yes');
      const { out } = await scene.run('erasures list --json');
      const lines = out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(lines).toMatchObject([{ reference: 'case-2' }, { reference: 'case-1' }]);
      expect((await scene.run('erasures list')).out).toMatch(/delete +waiting +0 of 2 +case-1$/m);
    });

    it('can be paused and resumed', async () => {
      expect(await scene.answer('erasures pause case-1')).toMatchObject({ state: 'paused' });
      expect(await scene.answer('erasures resume case-1')).toMatchObject({ state: 'waiting' });
    });

    it('is tried again for the failed users', async () => {
      expect(await scene.answer('erasures retry case-1')).toMatchObject({ state: 'waiting', failed: 0 });
      expect(await scene.run('erasures retry nothing')).toMatchObject({ code: 1 });
    });

    it('can be canceled, when that is typed', async () => {
      expect(await scene.run('erasures cancel case-1')).toMatchObject({ code: 2 });
      expect(await scene.run('erasures cancel case-1', { typed: 'no' })).toMatchObject({ code: 1 });
      const { code, err } = await scene.run('erasures cancel case-1', { typed: 'cancel 2' });
      expect(code).toBe(0);
      expect(err).toContain('2 users of case-1 would not be erased');
      expect(await scene.answer('erasures status case-1')).toMatchObject({ state: 'canceled', canceled: 2 });
      expect((await scene.run('erasures list')).out).toMatch(/canceled +0 of 2, 2 canceled +case-1$/m);
    });

    it('can be canceled by a script', async () => {
      expect(await scene.answer('erasures cancel case-1 --yes')).toMatchObject({ canceled: 2 });
    });

    it('is only watched by the same command, unless --execute-here is given', async () => {
      const watching = scene.start('erase ada ben --mode delete --reference case-1 --yes');
      await watching.waitForStderr('this command only watches');
      watching.interrupt();
      expect(await watching.code).toBe(5);
      expect(watching.err()).toContain(
        'This command only watched: your app continues to erase them. To stop that:',
      );
      expect(watching.err()).not.toContain('Stopped');
      expect(scene.service.received.count).toBe(0);
      const both = await scene.run('erase ada --mode delete --yes --no-wait --execute-here');
      expect(both).toMatchObject({ code: 2 });
    });

    it('can be carried out here by the same command, and watched from elsewhere', async () => {
      const watching = scene.start('erasures status case-1 --watch --json');
      await watching.waitForStderr('0 of 2');
      expect(
        await scene.run('erase ada ben --mode delete --reference case-1 --execute-here --yes'),
      ).toMatchObject({
        code: 0,
      });
      expect(await watching.code).toBe(0);
      expect(JSON.parse(watching.out())).toMatchObject({ state: 'done', done: 2 });
      expect(scene.service.users.all()).toMatchObject([{ uid: 'cleo' }]);
    });
  });

  describe('while the service is down', () => {
    let app: INestApplicationContext;
    beforeEach(async () => {
      await scene.service.goDown();
      app = await startApp();
    });
    afterEach(async () => {
      await app.close();
    });

    it('a command that watches says why nothing is done, and when it is tried again', async () => {
      const watching = scene.start('erase ada ben --mode delete --reference case-1 --yes');
      await watching.waitForStderr('not done at the first attempt (');
      watching.interrupt();
      expect(await watching.code).toBe(5);
      const { out } = await scene.run('erasures status case-1');
      expect(out).toMatch(/^last failure +\S.*; (next attempt in \d+ s|the next attempt is due)$/m);
      const status = (await scene.answer('erasures status case-1')) as { retrying?: { cause: string } };
      expect(watching.err()).toContain(`not done at the first attempt (${status.retrying?.cause})`);
    });
  });

  describe('an erasure of which some users are not erased in the end', () => {
    it('ends with 7 when the app vetoed them', async () => {
      const app = await startApp({
        beforeErase: ({ uid }) => (uid === 'ben' ? { veto: 'legal hold' } : undefined),
      });
      try {
        const { code, out, err } = await scene.run(
          'erase ada ben --mode delete --reference case-1 --yes --json',
        );
        expect(code).toBe(7);
        expect(JSON.parse(out)).toMatchObject({ state: 'done', done: 1, vetoed: 1 });
        expect(err).toContain('Not erased: 1 user vetoed by erasure.beforeErase.');
        expect(await scene.run('erasures status case-1 --watch')).toMatchObject({ code: 7 });
        expect(await scene.run('erasures status case-1')).toMatchObject({ code: 0 });
      } finally {
        await app.close();
      }
    });

    it('ends with 8 when it was canceled', async () => {
      const erasing = scene.start('erase ada ben --mode delete --reference case-1 --yes');
      await erasing.waitForStderr('this command only watches');
      const watching = scene.start('erasures status case-1 --watch');
      await watching.waitForStderr('0 of 2');
      await scene.run('erasures cancel case-1 --yes');
      expect([await erasing.code, await watching.code]).toEqual([8, 8]);
      expect(watching.err()).not.toContain('2 of 2');
      expect(erasing.err()).toContain('Not erased: 2 users canceled.');
    });

    it('ends with 5 when the watching is interrupted before', async () => {
      await scene.run('erase ada --mode delete --reference case-1 --no-wait --yes');
      const { code, waitForStderr, interrupt, err } = scene.start('erasures status case-1 --watch');
      await waitForStderr('0 of 1');
      interrupt();
      expect(await code).toBe(5);
      expect(err()).toContain(
        '1 user not erased yet. This command only watched: your app continues to erase them.',
      );
      expect(err()).toContain('To stop that: npx debate-space erasures pause case-1 (or cancel).');
      expect(err()).not.toContain('Stopped');
    });

    it('says that nobody goes on, when the reference is paused', async () => {
      await scene.run('erase ada --mode delete --reference case-1 --no-wait --yes');
      await scene.run('erasures pause case-1');
      const { code, waitForStderr, interrupt, err } = scene.start('erasures status case-1 --watch');
      await waitForStderr('0 of 1');
      interrupt();
      expect(await code).toBe(5);
      expect(err()).toContain(
        '1 user not erased yet. They are paused. To continue: npx debate-space erasures resume case-1',
      );
    });
  });

  describe('the receipts', () => {
    beforeEach(async () => {
      await scene.run('erase ada ben --mode delete --reference case-1 --execute-here --yes');
    });

    it('are those of a reference, one a line, with no uid in them', async () => {
      const { code, out } = await scene.run('erasures receipts case-1 --json');
      expect(code).toBe(0);
      const receipts = out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      const receipt = {
        reference: 'case-1',
        mode: 'delete',
        outcome: 'erased',
        status: 200,
        loggedOut: true,
      };
      expect(receipts).toMatchObject([receipt, receipt]);
      expect(out).not.toMatch(/ada|ben/);
    });

    it('are those of a uid', async () => {
      const { out } = await scene.run('erasures receipts --uid ada');
      expect(out).toMatch(/^DONE .*\n\S+ {2}delete +erased +200 +1× +\S+ {2}case-1\n$/);
      const none = await scene.run('erasures receipts --uid cleo');
      expect(none).toMatchObject({ code: 0, out: '' });
      expect(none.err).toBe('There are no receipts.\n');
    });

    it.each(['erasures receipts', 'erasures receipts case-1 --uid ada'])(
      'need one of the two: %s',
      async (command) => {
        expect(await scene.run(command)).toMatchObject({ code: 2 });
      },
    );
  });

  it('an unknown reference is a failure that says so', async () => {
    const { code, out } = await scene.run('erasures status case-9 --json');
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE' } });
    expect(out).toContain('see: npx debate-space erasures list');
    expect(out).not.toContain('DebateSpaceErasures');
  });
});

it('without the storage of the app there is nothing to see, and the hint is named', async () => {
  const env = { ...keys, DEBATE_SPACE_APPLICATION_NAME: 'demo', DEBATE_SPACE_AUTH_URL: 'http://localhost' };
  const { code, err } = await run('erasures list', { env });
  expect(code).toBe(3);
  expect(err).toContain(
    'set DEBATE_SPACE_STORAGE to sqlite:<file>, or to the URL of its Postgres, MySQL or MariaDB',
  );
});
