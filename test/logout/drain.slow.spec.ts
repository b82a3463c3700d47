import { describe, expect, it } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import {
  DebateSpaceErasures,
  DebateSpaceOutbox,
  DebateSpaceService,
  type StorageEngine,
} from 'nestjs-debate-space';
import { scenario } from '#support/hosts/scenario.js';

const COUNT = 60;
const uids = Array.from({ length: COUNT }, (_, n) => `user-${n}`);
const scene = scenario();

describe('drain, in a process without a worker', () => {
  async function withoutWorker(storage?: StorageEngine): Promise<INestApplicationContext> {
    const shared = storage ?? (await scene.sqlite());
    const app = await scene.app({ storage: shared, worker: false, http: { rateLimit: false } });
    return app.init();
  }
  const logOutAll = async (app: INestApplicationContext): Promise<void> => {
    for (const uid of uids) await app.get(DebateSpaceService).logoutUser(uid);
  };

  it('delivers every logout that waits, once, and nothing before it is called', async () => {
    const app = await withoutWorker();
    await logOutAll(app);
    expect(scene.service.received.of('logout')).toEqual([]);
    const stats = await app.get(DebateSpaceOutbox).drain({ timeoutMs: 60_000 });
    expect(stats).toMatchObject({ drained: true, pending: 0, parked: 0 });
    expect(scene.service.received.logouts.toSorted()).toEqual(uids.toSorted());
  });

  it('delivers what another process has stored, its erasures too, and may be called again', async () => {
    const storage = await scene.sqlite();
    const [app, scheduled] = [await withoutWorker(storage), await withoutWorker(storage)];
    const outbox = scheduled.get(DebateSpaceOutbox);
    await app.get(DebateSpaceService).logoutUser('bob');
    const { reference } = await app.get(DebateSpaceErasures).request({ uid: 'alice', mode: 'delete' });
    expect(await outbox.drain({ timeoutMs: 60_000 })).toMatchObject({ drained: true, pending: 0 });
    expect(scene.service.users.has('alice')).toBe(false);
    expect(await app.get(DebateSpaceErasures).status(reference)).toMatchObject({ state: 'done', done: 1 });
    await app.get(DebateSpaceService).logoutUser('bob');
    expect(await outbox.drain({ timeoutMs: 60_000 })).toMatchObject({ drained: true, pending: 0 });
    expect(scene.service.received.logouts.filter((uid) => uid === 'bob')).toHaveLength(2);
  });

  it('leaves what failed to its next attempt', async () => {
    const app = await withoutWorker();
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'logout', times: 1 });
    await app.get(DebateSpaceService).logoutUser('bob');
    const stats = await app.get(DebateSpaceOutbox).drain({ timeoutMs: 60_000 });
    expect(stats).toMatchObject({ drained: true, pending: 1 });
  });

  it('ends when the app is closed, and another process delivers what is left, each logout once', async () => {
    const storage = await scene.sqlite();
    const app = await withoutWorker(storage);
    scene.service.faults.add({ kind: 'latency', ms: 300, operation: 'logout' });
    await logOutAll(app);
    const draining = app.get(DebateSpaceOutbox).drain({ timeoutMs: 60_000 });
    await scene.service.received.waitFor('logout', { count: 10, timeoutMs: 30_000 });
    const [stats] = await Promise.all([draining, app.close()]);
    expect(stats).toMatchObject({ drained: false });
    expect(scene.service.received.logouts.length).toBeLessThan(COUNT);

    const next = await withoutWorker(storage);
    const left = await next.get(DebateSpaceOutbox).drain({ timeoutMs: 60_000 });
    expect(left).toMatchObject({ drained: true, pending: 0, parked: 0 });
    expect(scene.service.received.logouts.toSorted()).toEqual(uids.toSorted());
  });

  it('ends when its time is over, although the service keeps silent', async () => {
    const app = await withoutWorker();
    scene.service.faults.add({ kind: 'latency', ms: 60_000, operation: 'logout' });
    await logOutAll(app);
    const stats = await app.get(DebateSpaceOutbox).drain({ timeoutMs: 500 });
    expect(stats).toMatchObject({ drained: false, pending: COUNT });
  });
  it.each([0, -1, 1.5, NaN, 2 ** 31])('refuses a timeoutMs of %p', async (timeoutMs) => {
    const app = await withoutWorker();
    await expect(app.get(DebateSpaceOutbox).drain({ timeoutMs })).rejects.toThrow('timeoutMs must be');
  });
});

describe('drain', () => {
  it('refuses a storage in memory, which no other process can fill', async () => {
    const app = await scene.app();
    await expect(app.get(DebateSpaceOutbox).drain()).rejects.toThrow('a durable storage is required');
  });
});
