import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DebateSpaceOutbox } from 'nestjs-debate-space';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { configuredFor, keys, run, start } from '../testing/command-line.js';
import { sqliteFile } from '../testing/storages.js';

let service: DebateSpaceSimulator;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  service = await DebateSpaceSimulator.start({
    apiKey: keys.DEBATE_SPACE_API_KEY,
    secretKey: keys.DEBATE_SPACE_SECRET_KEY,
    users: [{ uid: 'ada' }],
  });
  env = configuredFor(service);
});
afterEach(async () => {
  await service.stop();
});

describe('logout', () => {
  it('logs the user out, and waits for it', async () => {
    const { code, out } = await run('logout ada --json', { env });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ state: 'delivered', reason: 'requested', attempts: 1 });
    expect(service.received.logouts).toEqual(['ada']);
  });

  it('does not claim that the user is known', async () => {
    const { code, out } = await run('logout nobody', { env });
    expect([code, out]).toEqual([
      0,
      'The service accepted the logout. It does not say whether it knows the user.\n',
    ]);
  });

  it('names the cause and the hint when the service refuses', async () => {
    service.faults.add({ kind: 'status', status: 403, operation: 'logout' });
    const { code, err } = await run('logout ada', { env });
    expect(code).toBe(4);
    expect(err).toMatch(/The service refused the logout \(403\): .*DEBATE_SPACE_SECRET_KEY/);
    expect(err).not.toMatch(/\bsecretKey\b/);
  });

  it('tries again while the service is away, until it is interrupted', async () => {
    await service.goDown();
    const { code, waitForStderr, interrupt, err } = start('logout ada', { env });
    await waitForStderr('not delivered yet (ECONNREFUSED)');
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('run the command again');
  });

  it('does not know how a logout ended that is not in the history, as of an app that keeps no history', async () => {
    const history = jest.spyOn(DebateSpaceOutbox.prototype, 'history').mockResolvedValue([]);
    const { code, out } = await run('logout ada --json', { env });
    history.mockRestore();
    expect([code, JSON.parse(out)]).toEqual([0, { state: 'unknown' }]);
  });

  it('leaves the logout to the app only through a storage that both use', async () => {
    const { code, err } = await run('logout ada --no-wait', { env });
    expect(code).toBe(3);
    expect(err).toContain('DEBATE_SPACE_STORAGE');
  });

  it('takes any uid, also one that looks like an option', async () => {
    expect(await run('logout -- --ada', { env })).toMatchObject({ code: 0 });
    expect(service.received.logouts).toEqual(['--ada']);
    expect(await run('logout ..', { env })).toMatchObject({ code: 2 });
  });
});

describe('logout, with the storage of an app', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-sqlite-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });
  beforeEach(async () => {
    env = configuredFor(service, await sqliteFile(join(folder, 'debate-space.db')));
  });

  it('leaves the logout to the app, and watches until a process has sent it', async () => {
    const watching = start('logout ada', { env });
    await watching.waitForStderr('this command only watches');
    expect(service.received.all).toEqual([]);
    expect(await run('logout nobody --no-wait', { env })).toMatchObject({
      out: 'Queued; your app sends it.\n',
    });
    expect(await run('logout ada --execute-here', { env })).toMatchObject({ code: 0 });
    expect(await watching.code).toBe(0);
    expect(service.received.logouts.toSorted()).toEqual(['ada', 'ada', 'nobody']);
  });

  it('keeps the logout for the app when the command is interrupted', async () => {
    const { code, waitForStderr, interrupt, err } = start('logout ada', { env });
    await waitForStderr('this command only watches');
    interrupt();
    expect(await code).toBe(5);
    expect(err()).toContain('it waits in the storage, and your app sends it');
    const { out } = await run('outbox stats --json', { env });
    expect(JSON.parse(out)).toMatchObject({ engine: 'sqlite', pending: 1 });
  });
});
