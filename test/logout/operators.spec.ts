import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  DebateSpaceHealth,
  DebateSpaceOutbox,
  DebateSpaceService,
  InvalidArgumentError,
  InvalidUidError,
  memoryStorage,
  type DebateSpaceEvent,
  type DebateSpaceHealthOptions,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
import { nextEvents } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import { replacing } from '#support/storages/flaky-storage.js';

@Controller()
class HealthController {
  constructor(
    private readonly terminus: HealthCheckService,
    private readonly debateSpace: DebateSpaceHealth,
  ) {}

  @Get('health')
  check(): unknown {
    return this.terminus.check([() => this.debateSpace.indicator(undefined, limits)]);
  }
}
Reflect.defineMetadata('design:paramtypes', [HealthCheckService, DebateSpaceHealth], HealthController);

const scene = scenario();
let app: INestApplication;
let limits: DebateSpaceHealthOptions | undefined;

async function start(options: Partial<DebateSpaceModuleOptions> = {}): Promise<void> {
  limits = undefined;
  const imports = [TerminusModule.forRoot({ logger: false })];
  app = await scene.app(options, { imports, controllers: [HealthController] });
  await app.listen(0, '127.0.0.1');
}

const outbox = (): DebateSpaceOutbox => app.get(DebateSpaceOutbox);
const logOut = (uid: string): Promise<void> => app.get(DebateSpaceService).logoutUser(uid);
async function logOutUntil(type: DebateSpaceEvent['type'], ...uids: string[]): Promise<void> {
  const events = nextEvents(app, type, uids.length);
  for (const uid of uids) await logOut(uid);
  await events;
}

/** With them there are so many failures in a row that the service counts as down. */
const others = ['carol', 'dave', 'erin', 'frank'];

describe('DebateSpaceOutbox', () => {
  it('is empty at first', async () => {
    await start();
    expect(await outbox().stats()).toEqual({
      ...{ engine: 'memory', durable: false, degraded: false, serviceDown: false, pending: 0, parked: 0 },
    });
    expect(await outbox().parked()).toEqual([]);
    expect(await outbox().history('alice')).toEqual([]);
  });

  it('shows what waits while the service is down, and how long', async () => {
    await start({ storage: await scene.sqlite() });
    await scene.service.goDown();
    await logOutUntil('logout-retrying', 'alice', ...others);
    const stats = { engine: 'sqlite', durable: true, pending: 5, serviceDown: true };
    expect(await outbox().stats()).toMatchObject({ ...stats, oldestPendingMs: expect.any(Number) });
    expect(await outbox().history('alice')).toEqual([
      {
        ...{ id: expect.any(String), state: 'pending', reason: 'requested', endedAt: expect.any(Date) },
        ...{ attempts: 1, cause: 'ECONNREFUSED', dueAt: expect.any(Date) },
      },
    ]);
    expect(await outbox().history('bob')).toEqual([]);
  });

  it.each([
    [undefined, ['delivered']],
    [0, []],
  ])('keeps the history of a user’s logouts for %s ms', async (historyRetentionMs, states) => {
    await start({ logout: { historyRetentionMs } });
    await logOutUntil('logout-delivered', 'alice', 'bob');
    const history = await outbox().history('alice');
    expect(history.map(({ state }) => state)).toEqual(states);
    for (const entry of history)
      expect(entry).toMatchObject({ reason: 'requested', attempts: 1, finishedAt: expect.any(Date) });
  });

  it('lists what is parked with the hint, and retries or discards it', async () => {
    await start({ storage: await scene.sqlite() });
    scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout', times: 2 });
    await logOutUntil('logout-parked', 'alice', 'bob');
    const parked = await outbox().parked();
    expect(parked.map(({ uid }) => uid).sort()).toEqual(['alice', 'bob']);
    const hint = expect.stringContaining('secretKey') as unknown;
    expect(parked[0]).toMatchObject({ reason: 'requested', cause: '401', attempts: 1, hint });
    expect(await outbox().parked({ limit: 1, skip: 2 })).toEqual([]);

    const idOf = (uid: string): string => parked.find((logout) => logout.uid === uid)?.id ?? '';
    expect(await outbox().discard(idOf('bob'))).toBe(true);
    expect(await outbox().retry(idOf('bob'))).toBe(false);
    expect(await outbox().retry(idOf('alice'))).toBe(true);
    await scene.service.received.waitFor('logout', { count: 3 });
    expect(scene.service.received.logouts).toEqual(['alice']);
    expect(await outbox().history('bob')).toMatchObject([{ state: 'discarded' }]);
  });

  it.each([{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { skip: -1 }])(
    'refuses the page %j',
    async (page) => {
      await start();
      await expect(outbox().parked(page)).rejects.toThrow(InvalidArgumentError);
    },
  );

  it('refuses the history of an invalid uid', async () => {
    await start();
    await expect(outbox().history('')).rejects.toThrow(InvalidUidError);
  });
});

describe('DebateSpaceHealth', () => {
  const health = async (): Promise<{ status: number; body: string }> => {
    const response = await fetch(`${await app.getUrl()}/health`);
    return { status: response.status, body: await response.text() };
  };

  it('is up when nothing waits', async () => {
    await start();
    expect(await app.get(DebateSpaceHealth).check()).toMatchObject({ state: 'up', problems: [] });
    expect(await health()).toMatchObject({ status: 200, body: expect.stringContaining('"state":"up"') });
  });

  it('is degraded and healthy for a load balancer, never down, while the service is away for an hour', async () => {
    await start();
    scene.service.faults.add({ kind: 'status', status: 403, operation: 'logout', times: 1 });
    await logOutUntil('logout-parked', 'bob');
    await scene.service.goDown();
    await logOutUntil('logout-retrying', 'alice', ...others);
    const now = Date.now();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(now + 60 * 60_000);
    const { state, problems } = await app.get(DebateSpaceHealth).check();
    const answer = await health();
    clock.mockRestore();
    expect({ state, problems }).toEqual({
      state: 'degraded',
      problems: [
        expect.stringMatching(/^the oldest logout has waited for 36\d\d s$/),
        'the service does not take logouts',
        expect.stringContaining('1 logouts are parked'),
      ],
    });
    expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('"state":"degraded"') });
    expect(answer.body).not.toContain('alice');
  });

  it('is degraded when the storage cannot be read, and down when that lasts', async () => {
    const counts = (): Promise<never> => Promise.reject(new Error('gone'));
    await start({ storage: replacing(memoryStorage(), () => ({ counts })) });
    const unreadable = {
      problems: ['the storage cannot be read'],
      stats: { unreadableMs: expect.any(Number) },
    };
    expect(await app.get(DebateSpaceHealth).check()).toMatchObject({ state: 'degraded', ...unreadable });
    expect((await health()).status).toBe(200);
    limits = { downAfterMs: -1 };
    expect(await app.get(DebateSpaceHealth).check(limits)).toMatchObject({ state: 'down', ...unreadable });
    expect(await health()).toMatchObject({ status: 503, body: expect.stringContaining('"state":"down"') });
  });
});
