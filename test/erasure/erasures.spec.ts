import { describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { firstValueFrom, lastValueFrom, share, toArray } from 'rxjs';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceHealth,
  type DebateSpaceModuleOptions,
  type ErasureReceipt,
} from 'nestjs-debate-space';
import { firstEvent, nextEvents } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';

const scene = scenario({ rateLimit: false });
const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

const erasuresOf = (app: INestApplication): DebateSpaceErasures => app.get(DebateSpaceErasures);

async function start(options: Partial<DebateSpaceModuleOptions> = {}): Promise<INestApplication> {
  const storage = options.storage ?? (await scene.sqlite());
  return (await scene.app({ http: { rateLimit: false }, ...options, storage })).init();
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
const register = (uids: readonly string[]): void => {
  for (const uid of uids) scene.service.users.add({ uid });
};

describe('an erasure', () => {
  it('logs the user out, then erases, and leaves a receipt without the uid', async () => {
    const app = await start();
    const finished = firstEvent(app, 'erasure-finished');
    const requested = await erasuresOf(app).request({
      uid: 'alice',
      mode: 'delete',
      reference: 'case 1/2 ü',
      requestedBy: 'the user',
    });
    expect(requested).toMatchObject({
      reference: 'case 1/2 ü',
      mode: 'delete',
      complete: true,
      total: 1,
      alreadyRequested: false,
    });
    await finished;

    const operations = scene.service.received.all
      .filter(({ uid }) => uid === 'alice')
      .map((r) => r.operation);
    expect(operations).toEqual(['logout', 'delete']);
    expect(scene.service.users.has('alice')).toBe(false);
    expect(await erasuresOf(app).status('case 1/2 ü')).toMatchObject({
      state: 'done',
      total: 1,
      done: 1,
      waiting: 0,
      finishedAt: expect.any(Date),
    });
    const receipts = await all(erasuresOf(app).receipts('case 1/2 ü'));
    expect(receipts).toEqual([
      {
        reference: 'case 1/2 ü',
        mode: 'delete',
        requestedBy: 'the user',
        subject: expect.any(String),
        requestedAt: requested.requestedAt,
        doneAt: expect.any(Date),
        attempts: 1,
        outcome: 'erased',
        status: 200,
        loggedOut: true,
      },
    ]);
    expect(JSON.stringify(receipts)).not.toContain('alice');
  });

  it('is not done at an address where every answer is 404', async () => {
    const app = await start({ baseUrl: `${scene.service.url}/api/v2` });
    const heldUp = firstEvent(app, 'erasure-service-down');
    await erasuresOf(app).request({ uid: 'alice', mode: 'delete', reference: 'nowhere' });
    expect(await heldUp).toMatchObject({ cause: '404' });
    expect(await erasuresOf(app).status('nowhere')).toMatchObject({ waiting: 1, notFound: 0 });
    expect(await all(erasuresOf(app).receipts('nowhere'))).toEqual([]);
  });

  it('is vetoed by the host before anything of the user is sent', async () => {
    const pending: unknown[] = [];
    const app = await start({
      erasure: {
        beforeErase: (erasure) => {
          pending.push(erasure);
          return erasure.uid === 'alice' ? { veto: 'legal hold' } : undefined;
        },
      },
    });
    const finished = nextEvents(app, 'erasure-finished', 2);
    const alice = { uid: 'alice', mode: 'delete', reference: 'v', requestedBy: 'x' } as const;
    await erasuresOf(app).request(alice);
    await erasuresOf(app).request({ uid: 'bob', mode: 'delete', reference: 'w' });
    await finished;
    expect(pending).toContainEqual(alice);
    expect(scene.service.received.all.filter(({ uid }) => uid === 'alice')).toEqual([]);
    expect(await erasuresOf(app).status('v')).toMatchObject({ state: 'done', vetoed: 1, done: 0 });
    const receipts = await all(erasuresOf(app).receipts('v'));
    expect(receipts).toMatchObject([{ outcome: 'vetoed', reason: 'legal hold' }]);
    expect(['alice', 'bob'].map((uid) => scene.service.users.has(uid))).toEqual([true, false]);
  });

  it('stops reading a list that hangs when its signal aborts, and keeps what it has read', async () => {
    const app = await start();
    const abort = new AbortController();
    async function* hanging(): AsyncGenerator<string> {
      yield* uidsOf(250);
      queueMicrotask(() => {
        abort.abort();
      });
      yield 'one more';
      await new Promise(() => undefined);
    }
    const list = { mode: 'delete', reference: 'hanging', signal: abort.signal } as const;
    await expect(erasuresOf(app).requestMany(hanging(), list)).rejects.toMatchObject({
      name: 'AbortError',
    });
    expect(await erasuresOf(app).status('hanging')).toMatchObject({ complete: false, total: 250 });
  });

  it('is paused, resumed and canceled over all instances, and sends each user once', async () => {
    const storage = await scene.sqlite();
    const [one, other] = [await start({ storage }), await start({ storage })];
    const uids = uidsOf(50);
    register(uids);
    const erasures = erasuresOf(other);
    scene.service.faults.add({ kind: 'latency', ms: 20, operation: 'delete' });
    await erasuresOf(one).requestMany(uids, { mode: 'delete', reference: 'stop and go' });
    await scene.service.received.waitFor('delete', { count: 8 });
    expect(await erasures.pause('stop and go')).toMatchObject({ state: 'paused' });
    const quiet = await settled(() => scene.service.received.count);
    expect(quiet).toBeLessThan(50);
    await erasures.resume('stop and go');
    await scene.service.received.waitFor('delete', { count: 20 });
    await erasures.cancel('stop and go');
    const ended = await lastValueFrom(erasures.progress('stop and go'));
    expect(ended).toMatchObject({ state: 'canceled', waiting: 0, total: 50, failed: 0 });
    expect(ended.canceled).toBeGreaterThan(0);
    expect(ended.done + ended.canceled).toBe(50);
    expect(scene.service.received.of('delete')).toHaveLength(ended.done);
    await expect(
      erasures.requestMany(uids, { mode: 'delete', reference: 'stop and go' }),
    ).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ERASURE_CONFLICT' });
  });

  it('is counted in a dry run against the users of the service, which touches nobody', async () => {
    const notNow = (): never => {
      throw new Error('not now');
    };
    const app = await start({ erasure: { beforeErase: notNow } });
    register(uidsOf(120));
    await erasuresOf(app).requestMany(['user-3', 'user-149'], { mode: 'delete', reference: 'd' });
    const counts = await erasuresOf(app).dryRun([...uidsOf(150), 'user-1', ''], { mode: 'delete' });
    expect(counts).toMatchObject({ total: 152, known: 120, notFound: 30, alreadyRequested: 2 });
    const operations = new Set(scene.service.received.all.map(({ operation }) => operation));
    expect(operations).toEqual(new Set(['token', 'list']));
  });

  it('keeps its receipts for receiptRetentionMs', async () => {
    const app = await start({ erasure: { receiptRetentionMs: 0 } });
    const finished = firstEvent(app, 'erasure-finished');
    await erasuresOf(app).request({ uid: 'alice', mode: 'delete', reference: 'short' });
    await finished;
    await until(async () => (await all<ErasureReceipt>(erasuresOf(app).receiptsOf('alice'))).length === 0);
    await until(async () => (await all(erasuresOf(app).list())).length === 0);
  });
});

/** Resolves with a number when it has stopped changing. */
async function settled(read: () => number): Promise<number> {
  for (let before = read(); ; before = read()) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (read() === before) return before;
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
}

describe('the log of erasures', () => {
  it('has one line for each change, with the hint, and nothing personal', async () => {
    const lines: string[] = [];
    const note = (level: string) => (text: string) => void lines.push(`${level} ${text}`);
    const erasure = { overdueAfterMs: [1], giveUpAfterMs: 1 };
    const logger = { log: note('log'), warn: note('warn'), error: note('error') };
    const app = await scene.app({ erasure }, {}, { logger });
    await app.init();
    const erasures = app.get(DebateSpaceErasures);

    scene.service.faults.add({ kind: 'status', status: 503, operation: 'delete', times: 3 });
    const [overdue, goOn] = [firstEvent(app, 'erasure-overdue'), firstEvent(app, 'erasure-service-up')];
    const parked = firstEvent(app, 'erasure-parked');
    await erasures.request({ uid: 'alice', mode: 'delete', reference: 'case-1' });
    await parked;
    await overdue;
    const { problems } = await app.get(DebateSpaceHealth).check();
    expect(problems).toContainEqual(expect.stringContaining('an erasure is overdue'));
    const finished = firstEvent(app, 'erasure-finished');
    await erasures.retry('case-1');
    await Promise.all([finished, goOn]);
    const overdueLine = 'error erasure case-1 is overdue: 1 users are not erased after 0 days';
    expect(lines).toContain(overdueLine); // whenever the runner looks for it
    expect(lines.filter((line) => line.includes('eras') && line !== overdueLine)).toEqual([
      expect.stringMatching(/^warn erasures are kept in memory, .*sqliteStorage/),
      'warn the service does not erase users (503); the erasures wait in the storage',
      'warn an erasure failed (503) and is tried again; more failures with this cause are not logged for 10 minutes',
      expect.stringMatching(/^error erasure of case-1 is parked \(503\): .*; then retry it$/),
      'log the service erases users again',
      'log erasure case-1 is finished: 1 done, 0 not found, 0 vetoed, 0 canceled',
    ]);
    expect(lines.join()).not.toContain('alice');
  });
});

describe('a host that shuts down', () => {
  it('reports the erasures that its memory loses, and waits for no progress', async () => {
    const erasure = { beforeErase: () => new Promise<undefined>(() => undefined) };
    const app = await scene.app({ erasure });
    await app.init();
    const events = firstValueFrom(app.get(DebateSpaceEvents).events$.pipe(toArray()));
    await app.get(DebateSpaceErasures).requestMany(['alice', 'bob'], { mode: 'delete', reference: 'r' });
    const progress = app.get(DebateSpaceErasures).progress('r').pipe(share());
    const over = lastValueFrom(progress);
    await firstValueFrom(progress);
    await scene.stop();
    expect(await over).toMatchObject({ waiting: 2 });
    expect(await events).toContainEqual({ type: 'erasures-dropped', count: 2 });
  });
});

describe('a process that has no worker', () => {
  it('is refused with a storage in memory', async () => {
    const starting = scene.app({ worker: false });
    await expect(starting).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_OPTIONS' });
  });
});
