import { describe, expect, it, jest } from '@jest/globals';
import { DebateSpaceOutbox } from 'nestjs-debate-space';
import { Scene } from '../testing/command-line.js';

const scene = new Scene();

describe('logout', () => {
  it('logs the user out, waits for it, and does not claim that the user is known', async () => {
    const answer = await scene.answer('logout ada');
    expect(answer).toMatchObject({ state: 'delivered', reason: 'requested', attempts: 1 });
    expect(scene.service.received.logouts).toEqual(['ada']);
    const out = 'The service accepted the logout. It does not say whether it has found the user.\n';
    expect(await scene.run('logout nobody')).toMatchObject({ code: 0, out });
  });

  it('names the cause and the hint when the service refuses', async () => {
    scene.service.faults.add({ kind: 'status', status: 403, operation: 'logout' });
    const { code, err } = await scene.run('logout ada');
    expect(code).toBe(4);
    expect(err).toMatch(/The service refused the logout \(403\): .*DEBATE_SPACE_SECRET_KEY/);
    expect(err).not.toMatch(/\bsecretKey\b/);
  });

  it('tries again while the service is away, until it is interrupted', async () => {
    await scene.service.goDown();
    const { code, waitForStderr, interrupt, err } = scene.start('logout ada');
    await waitForStderr('not delivered yet (ECONNREFUSED)');
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('run the command again');
  });

  it('does not know how a logout ended that is not in the history, as of an app that keeps no history', async () => {
    const history = jest.spyOn(DebateSpaceOutbox.prototype, 'history').mockResolvedValue([]);
    expect(await scene.answer('logout ada')).toEqual({ state: 'unknown' });
    history.mockRestore();
  });

  it('takes any uid, also one that looks like an option', async () => {
    expect(await scene.run('logout -- --ada')).toMatchObject({ code: 0 });
    expect(scene.service.received.logouts).toEqual(['--ada']);
    expect(await scene.run('logout ..')).toMatchObject({ code: 2 });
  });

  it('is left to the app, and watched until a process has sent it', async () => {
    const refused = { code: 3, err: expect.stringContaining('DEBATE_SPACE_STORAGE') };
    expect(await scene.run('logout ada --no-wait')).toMatchObject(refused);
    await scene.useSqlite();
    const interrupted = scene.start('logout ada');
    await interrupted.waitForStderr('this command only watches');
    interrupted.interrupt();
    expect(await interrupted.code).toBe(5);
    expect(interrupted.err()).toContain('it waits in the storage, and your app sends it');
    const watching = scene.start('logout ben');
    await watching.waitForStderr('this command only watches');
    const out = 'Queued; your app sends it.\n';
    expect(await scene.run('logout nobody --no-wait')).toMatchObject({ out });
    expect(scene.service.received.all).toEqual([]);
    expect(await scene.run('logout cleo --execute-here')).toMatchObject({ code: 0 });
    expect(await watching.code).toBe(0);
    expect(scene.service.received.logouts.toSorted()).toEqual(['ada', 'ben', 'cleo', 'nobody']);
    // Of the logout that this command requested, and not of the earlier one.
    expect(await scene.answer('logout ada --no-wait')).toMatchObject({ state: 'pending' });
  });
});
