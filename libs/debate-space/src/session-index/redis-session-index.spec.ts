import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { RESP_TYPES } from 'redis';
import { redisClient, redisServer, startRedis, type RunningRedis } from '../../../../test/support/redis.js';
import type { SendCommand } from '../redis-script.js';
import { redisSessionIndex } from './redis-session-index.js';
import { FORGOTTEN_AFTER_MS, type IndexedSession, type SessionIndex } from './session-index.js';

const HOUR = 60 * 60 * 1000;
const session = (hash: string, hours: number): IndexedSession => ({
  hash,
  uidHash: 'Zoë 🦊',
  expiresAt: Date.now() + hours * HOUR,
  sealed: 'sealed',
});

redisServer.describe('the session index on Redis', () => {
  const connect = () => redisClient(redis.url).connect();
  let redis: RunningRedis;
  let client: Awaited<ReturnType<typeof connect>>;
  let index: SessionIndex;
  let sent: string[];
  const send: SendCommand = (...args) => client.sendCommand(args);
  const open = (sendCommand: SendCommand) => redisSessionIndex({ sendCommand }).open('an {app}');

  beforeAll(async () => {
    redis = await startRedis();
    client = await connect();
  });
  beforeEach(async () => {
    await client.flushAll();
    await client.scriptFlush();
    sent = [];
    index = await open((...args) => {
      sent.push(args[0] ?? '');
      return send(...args);
    });
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });
  afterAll(async () => {
    client.destroy();
    await redis.stop();
  });

  it('sends the text of a script only to a Redis that does not know it', async () => {
    await index.put(session('a', 1));
    await index.put(session('b', 1));
    expect(sent).toEqual(['EVALSHA', 'EVAL', 'EVALSHA']);
    await client.scriptFlush();
    await index.put(session('c', 1));
    expect(sent.slice(3)).toEqual(['EVALSHA', 'EVAL']);
  });

  it('sends its commands so that the fourth word is a key', async () => {
    const fourth: string[] = [];
    const cluster = await open((...args) => {
      fourth.push(args[3] ?? '');
      return send(...args);
    });
    await cluster.put(session('a', 1));
    await cluster.remove('a', 'Zoë 🦊');
    await cluster.claimExpired(1, HOUR);
    expect(new Set(fourth)).toEqual(new Set(['{debate-space:sessions:an%20%7Bapp%7D}:sessions']));
  });

  it('keeps the keys of an application together, under the prefix', async () => {
    const mine = await redisSessionIndex({ sendCommand: send, prefix: 'mine' }).open('an {app}');
    await mine.put(session('a', 1));
    await mine.put(session('b', 1));
    await mine.remove('a', 'Zoë 🦊');
    const keys = await client.keys('*');
    expect(keys).toHaveLength(4);
    for (const key of keys) expect(key).toMatch(/^\{mine:an%20%7Bapp%7D\}:/);
  });

  it('lets every key end, not before the last session is forgotten', async () => {
    await index.put(session('later', 3));
    await index.put(session('sooner', 1));
    await index.put(session('gone', -1));
    for (const key of await client.keys('*')) {
      const ttl = await client.pTTL(key);
      expect(ttl).toBeGreaterThan(FORGOTTEN_AFTER_MS + 2 * HOUR);
      expect(ttl).toBeLessThanOrEqual(FORGOTTEN_AFTER_MS + 3 * HOUR);
    }
  });

  it('leaves nothing but a short memory of who removed the last session', async () => {
    await index.put(session('a', 1));
    await index.put({ ...session('a', -1), uidHash: 'somebody else' });
    await index.claimExpired(10, HOUR);
    await index.remove('a', 'somebody else');
    const [key = '', ...more] = await client.keys('*');
    expect(more).toEqual([]);
    expect(await client.pTTL(key)).toBeGreaterThan(0);
    expect(await client.pTTL(key)).toBeLessThan(HOUR);
  });

  it('understands answers in buffers', async () => {
    const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer };
    const buffered = await open((...args) => client.sendCommand(args, { typeMapping }));
    const gone = session('a', -1);
    await buffered.put(gone);
    expect(await buffered.claimExpired(10, HOUR)).toEqual([gone]);
    expect(await buffered.remove('a', gone.uidHash)).toEqual({ removed: true, others: false });
  });

  it('tells who removed it, even when the client had to send again', async () => {
    const again = await open(async (...args) => {
      await send(...args).catch(() => undefined);
      return send(...args);
    });
    await index.put(session('a', 1));
    expect(await again.remove('a', 'Zoë 🦊')).toEqual({ removed: true, others: false });
    expect(await again.remove('a', 'Zoë 🦊')).toEqual({ removed: false, others: false });
  });

  it('leaves alone what was noted after it was removed, even when the client had to send again', async () => {
    const again = await open(async (...args) => {
      await send(...args);
      await index.put(session('a', 1));
      return send(...args);
    });
    await index.put(session('a', 1));
    await index.remove('unknown', 'Zoë 🦊'); // so that Redis knows the script
    expect(await again.remove('a', 'Zoë 🦊')).toEqual({ removed: true, others: true });
    expect(await index.remove('a', 'Zoë 🦊')).toEqual({ removed: true, others: false });
  });

  it.each([-2 * HOUR, 2 * HOUR])('does not mind a host whose clock is %d ms off', async (offMs) => {
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + offMs);
    await index.put(session('alive', 1));
    await index.put(session('gone', -1));
    jest.restoreAllMocks();
    expect(await index.claimExpired(10, HOUR)).toMatchObject([{ hash: 'gone' }]);
    expect(await index.remove('gone', 'Zoë 🦊')).toEqual({ removed: true, others: true });
  });

  it('goes on when Redis has evicted a key', async () => {
    await index.put(session('a', -1));
    await client.del('{debate-space:sessions:an%20%7Bapp%7D}:sessions');
    expect(await index.claimExpired(10, HOUR)).toEqual([]);
    await index.put(session('a', -1));
    expect(await index.claimExpired(10, HOUR)).toMatchObject([{ hash: 'a' }]);
  });

  it('rejects with what the client rejects with', async () => {
    const down = new Error('connect ECONNREFUSED');
    const broken = await open((name) => {
      sent.push(name);
      return Promise.reject(down);
    });
    await expect(broken.put(session('a', 1))).rejects.toBe(down);
    await expect(broken.remove('a', 'Zoë 🦊')).rejects.toBe(down);
    await expect(broken.claimExpired(1, 1)).rejects.toBe(down);
    expect(sent).toEqual(['EVALSHA', 'EVALSHA', 'EVALSHA']);
  });

  it('rejects when the connection is closed', async () => {
    const leaving = await connect();
    const lost = await open((...args) => leaving.sendCommand(args));
    leaving.destroy();
    await expect(lost.remove('a', 'Zoë 🦊')).rejects.toThrow(Error);
  });

  it('rejects when the host’s function forgets to give back the answer', async () => {
    const forgetful = await open(async (...args) => {
      await send(...args);
    });
    await expect(forgetful.claimExpired(1, 1)).rejects.toThrow('sendCommand must give back');
  });
});
