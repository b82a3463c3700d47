import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { OutboxError, type Outbox, type OutboxEntry, type OutboxJob } from 'nestjs-debate-space';
import { bullmqOutbox, type BullmqOutboxOptions } from 'nestjs-debate-space/bullmq';
import { freePort } from './support/free-port.js';
import { outboxContext } from './support/outbox-context.js';
import { redisServer, startRedis, type RunningRedis } from './support/redis.js';
import { keysOf } from './support/traces.js';

const LONG = 60_000;
const none = { attempts: 0, rejections: 0 };
const context = outboxContext();
const entry = (id: string): OutboxEntry => ({
  id,
  uid: `user of ${id}`,
  reason: 'destroyed',
  endedAt: Date.now(),
});
const ids = (jobs: readonly OutboxJob[]): string[] => jobs.map((job) => job.entry.id);
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${n}`);

redisServer.describe('the outbox on BullMQ', () => {
  const opened: Outbox[] = [];
  let redis: RunningRedis;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis({ appendonly: 'yes' });
    client = new Redis(redis.url);
    client.on('error', () => undefined); // Redis is killed below
  });
  afterEach(async () => {
    for (const outbox of opened.splice(0)) await outbox.close();
    await client.flushall();
  });
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });

  async function open(options: Partial<BullmqOutboxOptions> = {}, of = context): Promise<Outbox> {
    const outbox = await bullmqOutbox({ connection: redis.url, ...options }).open(of);
    opened.push(outbox);
    return outbox;
  }

  /** What a dashboard of BullMQ does. */
  async function inDashboard<T>(work: (queue: Queue) => Promise<T>): Promise<T> {
    const queue = new Queue('logouts-app', { connection: client, prefix: 'debate-space' });
    try {
      return await work(queue);
    } finally {
      await queue.close();
    }
  }

  async function pend(outbox: Outbox, ...all: string[]): Promise<void> {
    for (const name of all) {
      await outbox.hold(entry(name), LONG);
      await outbox.release(name);
    }
  }

  async function claimNext(outbox: Outbox, leaseMs = LONG): Promise<readonly OutboxJob[]> {
    for (;;) {
      const jobs = await outbox.claim(10, leaseMs);
      if (jobs.length > 0) return jobs;
      await sleep(Math.min(50, Math.ceil((await outbox.nextDueMs()) ?? 50)));
    }
  }

  /** As soon as Redis is there again. */
  async function again<T>(call: () => T | Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof OutboxError)) throw error;
        await sleep(20);
      }
    }
  }

  const told = async (outbox: Outbox): Promise<void> =>
    new Promise((resolve) => {
      outbox.onChange(resolve);
    });

  async function refused(call: () => unknown): Promise<OutboxError> {
    try {
      await call();
    } catch (error) {
      expect(error).toBeInstanceOf(OutboxError);
      return error as OutboxError;
    }
    throw new Error('it was not refused');
  }

  it('gives each entry to one instance only, however many ask at once', async () => {
    const instances = await Promise.all([open(), open(), open()]);
    const eachInTurn = <T>(turns: number, call: (outbox: Outbox, turn: number) => Promise<T>): Promise<T[]> =>
      Promise.all(
        instances.flatMap((outbox, n) =>
          Array.from({ length: turns }, (_, turn) => call(outbox, turn * 3 + n)),
        ),
      );
    const all = names(300);
    await eachInTurn(100, (outbox, n) => pend(outbox, `e-${n}`));
    const claims = await eachInTurn(50, async (outbox) => outbox.claim(5, LONG));
    expect(claims.flatMap(ids).sort()).toEqual([...all].sort());
  });

  it('does not hold again what was released', async () => {
    const outbox = await open();
    await pend(outbox, 'a');
    await outbox.hold(entry('a'), LONG);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    await outbox.cancel('a');
    expect(ids(await outbox.claim(10, LONG))).toEqual(['a']);
  });

  it('pauses all instances at once', async () => {
    const [one, other] = await Promise.all([open(), open()]);
    await pend(one, 'a');
    await one.pause(200);
    await other.pause(1);
    expect(await Promise.all([one.claim(1, LONG), other.claim(1, LONG)])).toEqual([[], []]);
    expect(await other.nextDueMs()).toBeGreaterThan(100);
    expect(ids(await claimNext(other))).toEqual(['a']);
  });

  it('keeps applications apart that share a Redis', async () => {
    const [one, other] = await Promise.all([open(), open({}, { ...context, namespace: 'another' })]);
    await pend(one, 'a');
    await one.pause(LONG);
    await one.admit?.(1, LONG);
    expect(await other.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
    await pend(other, 'b');
    expect(ids(await other.claim(10, LONG))).toEqual(['b']);
    expect(await other.admit?.(1, LONG)).toBe(0);
  });

  it('admits no more than so many in any window, over all instances', async () => {
    const [most, perMs] = [5, 200];
    const instances = await Promise.all([open(), open()]);
    const clock = async (): Promise<number> => {
      const [seconds, micros] = await client.time();
      return Number(seconds) * 1000 + Number(micros) / 1000;
    };
    // Whoever is admitted was so between these two moments.
    const admitted: { readonly from: number; readonly to: number }[] = [];
    const caller = async (outbox: Outbox): Promise<void> => {
      for (let call = 0; call < 4; call += 1) {
        for (;;) {
          const from = await clock();
          const waitMs = (await outbox.admit?.(most, perMs)) ?? NaN;
          if (waitMs === 0) {
            admitted.push({ from, to: await clock() });
            break;
          }
          expect(waitMs).toBeLessThanOrEqual(perMs);
          await sleep(waitMs);
        }
      }
    };
    await Promise.all([...instances, ...instances, ...instances].map(caller));
    admitted.sort((one, other) => one.to - other.to);
    expect(admitted).toHaveLength(24);
    for (const [n, { from }] of admitted.entries()) {
      const next = admitted[n + most];
      if (next) expect(next.to - from).toBeGreaterThanOrEqual(perMs);
    }
    expect((admitted.at(-1)?.to ?? NaN) - (admitted[0]?.from ?? NaN)).toBeLessThan(5 * perMs + 500);
  });

  it('loses nothing when Redis is killed', async () => {
    const outbox = await open();
    await pend(outbox, 'pending', 'claimed', 'retried', 'parked', 'finished');
    await outbox.hold(entry('held'), LONG);
    await outbox.claim(5, LONG);
    await outbox.retry('pending', none, 0);
    await outbox.retry('retried', { attempts: 2, rejections: 1, cause: '503' }, LONG);
    await outbox.park('parked', none, 'a cure');
    await outbox.finish('finished', 1);
    await redis.crash();
    await redis.restart();
    expect(await again(() => outbox.counts())).toEqual({ held: 1, pending: 3, parked: 1 });
    expect(ids(await outbox.claim(10, LONG))).toEqual(['pending']);
    expect(await outbox.ofUser('user of retried')).toMatchObject({
      waiting: [{ state: 'pending', attempts: 2, rejections: 1, cause: '503' }],
    });
    expect(ids(await outbox.parked(10))).toEqual(['parked']);
    expect((await outbox.ofUser('user of finished')).finished).toHaveLength(1);
    await outbox.release('held');
    expect(ids(await outbox.claim(10, LONG))).toEqual(['held']);
  });

  it('says at once that Redis is away, and goes on when it is back', async () => {
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const shared = new Redis(redis.url);
    const outboxes = [await open(), await open({ connection: shared })];
    await redis.crash();
    for (const outbox of outboxes) {
      const begin = performance.now();
      const error = await refused(() => outbox.hold(entry('a'), LONG));
      await refused(() => outbox.claim(1, LONG));
      await refused(() => outbox.admit?.(1, LONG));
      expect(performance.now() - begin).toBeLessThan(1000);
      expect(error.message).toContain(`127.0.0.1:${redis.port}`);
      expect(inspect(error)).not.toContain('user of a');
    }
    await redis.restart();
    for (const [n, outbox] of outboxes.entries()) {
      await again(() => outbox.hold(entry(`after ${n}`), LONG));
      await outbox.release(`after ${n}`);
      expect(ids(await outbox.claim(10, LONG))).toEqual([`after ${n}`]);
    }
    shared.disconnect();
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('rejects what is under way when the connection breaks', async () => {
    const outbox = await open();
    const calls = names(50).map(async (name) => outbox.hold(entry(name), LONG));
    const outcomes = Promise.allSettled(calls);
    await redis.crash();
    const failed = (await outcomes).flatMap((one) =>
      one.status === 'rejected' ? [one.reason as unknown] : [],
    );
    for (const error of failed) expect(error).toBeInstanceOf(OutboxError);
    await redis.restart();
    const { held } = await again(() => outbox.counts());
    expect(held).toBeGreaterThanOrEqual(50 - failed.length);
  });

  it('closes in time while Redis is away, twice too, and takes nothing afterwards', async () => {
    const outbox = await open();
    await redis.crash();
    const begin = performance.now();
    await outbox.close();
    await outbox.close();
    expect(performance.now() - begin).toBeLessThan(2000);
    expect((await refused(() => outbox.counts())).message).toContain('closed');
    await redis.restart();
  });

  it('does not open without Redis, and says where it looked and what to do, but no password', async () => {
    const port = await freePort();
    const begin = performance.now();
    const error = await refused(() => open({ connection: `redis://:hush-hush@127.0.0.1:${port}` }));
    expect(performance.now() - begin).toBeLessThan(7000);
    expect(error.message).toBe(
      `Redis at 127.0.0.1:${port} did not answer (ECONNREFUSED); see that it runs, and check connection of bullmqOutbox`,
    );
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('hush-hush');
  });

  it('says that the password is wrong, but not what it is', async () => {
    const guarded = await startRedis({ requirepass: 'open-sesame' });
    try {
      const wrong = await refused(() => open({ connection: `redis://:hush-hush@127.0.0.1:${guarded.port}` }));
      expect(wrong.message).toContain('WRONGPASS');
      const missing = await refused(() => open({ connection: guarded.url }));
      expect(missing.message).toContain('NOAUTH');
      const connection = { host: '127.0.0.1', port: guarded.port, password: 'open-sesame' };
      const factory = bullmqOutbox({ connection });
      const outbox = await factory.open(context);
      opened.push(outbox);
      const seen = [wrong, missing, factory, outbox].map((one) =>
        inspect(one, { depth: null, showHidden: true }),
      );
      for (const text of seen) expect(text).not.toMatch(/hush-hush|open-sesame/);
      await outbox.close();
    } finally {
      await guarded.stop();
    }
  });

  it.each<[string, unknown, string]>([
    ['no connection', undefined, '`connection`'],
    ['an empty URL', '', '`connection`'],
    ['a URL that cannot be read', 'redis://:hush%hush@[', 'redis://localhost:6379'],
    ['a keyPrefix', { keyPrefix: 'mine:' }, 'prefix'],
  ])('refuses %s with the cure', async (_what, connection, cure) => {
    const error = await refused(() => open({ connection } as Partial<BullmqOutboxOptions>));
    expect(error.message).toContain(cure);
    expect(inspect(error)).not.toContain('hush');
  });

  it('leaves an instance of the host open', async () => {
    const shared = new Redis(redis.url, { lazyConnect: true });
    const listeners = shared.listenerCount('error');
    const outbox = await open({ connection: shared });
    await pend(outbox, 'a');
    await outbox.close();
    expect(await shared.ping()).toBe('PONG');
    expect(shared.listenerCount('error')).toBe(listeners);
    await shared.quit();
  });

  it('warns of a Redis that may lose logouts', async () => {
    expect((await open()).warnings).toEqual([]);
    const careless = await startRedis({ 'maxmemory-policy': 'allkeys-lru' });
    const outbox = await open({ connection: careless.url });
    expect(outbox.warnings).toEqual([
      expect.stringContaining('appendonly yes'),
      expect.stringContaining('maxmemory-policy noeviction'),
    ]);
    await outbox.close();
    await careless.stop();
  });

  it('leaves nothing of an entry in Redis when all is over', async () => {
    const outbox = await open();
    const uid = 'alice@example.com';
    for (const name of ['finished', 'superseded', 'discarded', 'cancelled']) {
      await outbox.hold({ ...entry(name), uid }, LONG);
      if (name !== 'cancelled') await outbox.release(name);
    }
    expect(String(await keysOf(client))).toContain('sealed');
    await outbox.cancel('cancelled');
    await outbox.claim(10, LONG);
    await outbox.retry('finished', { attempts: 1, rejections: 0, cause: '503' }, LONG);
    await outbox.finish('finished', 2);
    await outbox.park('discarded', none, 'a cure');
    await outbox.discard('discarded');
    await outbox.supersede(uid, Date.now());
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
    expect((await outbox.ofUser(uid)).finished).toHaveLength(3);
    expect(String(await keysOf(client))).not.toContain('sealed');
  });

  it('leaves no entry behind that comes before, and ends after, a change of the storage key', async () => {
    const before = await open();
    await pend(before, 'a');
    const after = await open({}, { ...context, uidHash: (uid) => `another hash of ${uid}` });
    await after.claim(10, LONG);
    await after.finish('a', 1);
    expect((await before.ofUser(entry('a').uid)).waiting).toEqual([]);
    expect(await client.keys('*:user:*')).toEqual([]);
    expect((await before.ofUser(entry('a').uid)).finished).toHaveLength(1);
  });

  it.each([
    ['is no JSON', '{"entry":'],
    ['is nothing', 'null'],
    ['is of somebody else', '{"entry":{"id":"b","sealed":"b"},"uidHash":"b","progress":{"attempts":0}}'],
    [
      'has a uid that can be read',
      '{"entry":{"id":"a","uid":"alice"},"uidHash":"a","progress":{"attempts":0}}',
    ],
  ])('parks a job whose data %s, and delivers the others', async (_what, data) => {
    const outbox = await open();
    await pend(outbox, 'a', 'b', 'c');
    await client.hset('debate-space:logouts-app:logout-a', 'data', data);
    expect(ids(await outbox.claim(3, LONG)).toSorted()).toEqual(['b', 'c']);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 2, parked: 1 });
    expect(await outbox.parked(10)).toMatchObject([
      { entry: { id: 'a', uid: '' }, cure: expect.stringContaining('damaged') },
    ]);
    expect(String(await keysOf(client))).not.toContain('alice');
    expect(await outbox.replay('a')).toBe(false);
    expect(await outbox.discard('a')).toBe(true);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 2, parked: 0 });
  });

  it('forgets in time what it kept of finished ones', async () => {
    const outbox = await open({}, { ...context, keepFinishedMs: 1_000 });
    await pend(outbox, 'a');
    await outbox.finish('a', 1);
    expect((await outbox.ofUser('user of a')).finished).toHaveLength(1);
    await sleep(1_010);
    expect((await outbox.ofUser('user of a')).finished).toEqual([]);
    expect(await client.keys('*finished*')).toEqual([]);
  });

  it('delivers in the end what process after process died over', async () => {
    const outbox = await open();
    await pend(outbox, 'a');
    for (let death = 0; death < 5; death += 1) expect(ids(await claimNext(outbox, 1))).toEqual(['a']);
    expect(await claimNext(outbox)).toMatchObject([none]);
  });

  it('recovers what processes died over at the very moment of the claim', async () => {
    const outbox = await open();
    await pend(outbox, 'a');
    // As a claim begins. BullMQ's own workers would give it up when it has stalled twice.
    const connection = client.duplicate({ maxRetriesPerRequest: null });
    const dying = new Worker('logouts-app', undefined, {
      connection,
      prefix: 'debate-space',
      lockDuration: 1,
    });
    await dying.getNextJob('a token', { block: false });
    await dying.close();
    connection.disconnect();
    await client.hset('debate-space:logouts-app:logout-a', 'stc', 10);
    await client.sadd('debate-space:logouts-app:stalled', 'logout-a'); // one round of its check is enough then
    expect(await outbox.claim(10, LONG)).toEqual([]);
    await told(outbox);
    expect(ids(await outbox.claim(10, LONG))).toEqual(['a']);
    await outbox.finish('a', 1);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
  });

  it('shows what is parked as failed, and heeds what is done about it in a dashboard of BullMQ', async () => {
    const outbox = await open();
    await pend(outbox, 'retried', 'removed', 'kept');
    await outbox.claim(10, LONG);
    for (const name of ['retried', 'removed', 'kept']) {
      await outbox.park(name, { attempts: 3, rejections: 3 }, 'mend it');
    }
    await inDashboard(async (queue) => {
      const failed = await queue.getFailed();
      expect(failed.map(({ failedReason }) => failedReason)).toEqual(['mend it', 'mend it', 'mend it']);
      await (await queue.getJob('logout-retried'))?.retry();
      await queue.remove('logout-removed');
    });
    expect(ids(await outbox.claim(10, LONG))).toEqual(['retried']);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 1 });
    expect(ids(await outbox.parked(10))).toEqual(['kept']);
  });

  it('does not ask again and again while the queue is paused in a dashboard of BullMQ', async () => {
    const outbox = await open();
    await pend(outbox, 'a');
    await inDashboard((queue) => queue.pause());
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeGreaterThan(1000);
    await inDashboard((queue) => queue.resume());
    expect(ids(await outbox.claim(10, LONG))).toEqual(['a']);
  });

  it.each(['bullmq', 'ioredis'])('tells how to install %s when it is missing', async (name) => {
    jest.resetModules();
    jest.unstable_mockModule(name, () => {
      throw new Error(`Cannot find package ${name}`);
    });
    const fresh = await import('nestjs-debate-space/bullmq');
    const opening = Promise.resolve(fresh.bullmqOutbox({ connection: redis.url }).open(context));
    await expect(opening).rejects.toMatchObject({
      code: 'ERR_DEBATE_SPACE_OUTBOX',
      message: expect.stringContaining('npm install bullmq ioredis'),
    });
    jest.unstable_unmockModule(name);
  });
});
