import { describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceEvent } from 'nestjs-debate-space';
import type { Operation } from 'debate-space-simulator';
import { filter, firstValueFrom } from 'rxjs';
import { EventLog } from '../../libs/debate-space/src/module/event-log.js';
import { ServicePause } from '../../libs/debate-space/src/service/http/service-pause.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';

const { simulator, runtime } = serviceClients();
const people = ['alice', 'bob', 'carol'].map((uid) => ({ uid }));
const years = { 'retry-after': '999999999' };

describe('a pause that the service requests', () => {
  it.each<[number, Operation]>([
    [429, 'list'],
    [503, 'list'],
    [429, 'logout'],
    [503, 'logout'],
    [503, 'token'],
  ])(
    'with %d from the route of “%s” is one event, one line and a problem of the health, and lasts an hour at most',
    async (status, operation) => {
      const service = await simulator({ users: people });
      service.faults.add({ operation, kind: 'status', status, headers: years });
      const { service: debate, events, health } = await runtime(service);
      const pauses: DebateSpaceEvent[] = [];
      const lines: unknown[] = [];
      const log = new EventLog({ log: () => 0, error: () => 0, warn: (line: unknown) => lines.push(line) });
      const requested = events.events$.pipe(filter(({ type }) => type === 'service-pause-requested'));
      requested.subscribe((event) => {
        pauses.push(event);
        log.write(event);
      });
      const first = firstValueFrom(requested, { defaultValue: undefined });
      if (operation === 'logout') await debate.logoutUser('alice');
      else for (let call = 0; call < 2; call += 1) await errorOf(debate.listUsers());
      await first;
      expect(pauses).toEqual([{ type: 'service-pause-requested', status, pauseMs: 3_600_000 }]);
      expect(lines).toEqual([
        `the service requested a pause of 3600 s (${status}); requests that can wait are sent after it`,
      ]);
      const { state, problems } = await health.check();
      expect(state).toBe('degraded');
      expect(problems.join('\n')).toMatch(/the service requested a pause, which ends in 3[56]\d\d s/);
    },
  );

  it('is a line in the log every ten minutes at most when the service requests short pauses again and again', () => {
    jest.useFakeTimers();
    const lines: unknown[] = [];
    const log = new EventLog({ log: () => 0, error: () => 0, warn: (line: unknown) => lines.push(line) });
    let events = 0;
    const pause = new ServicePause((event) => {
      events += 1;
      log.write(event);
    });
    for (let second = 0; second < 11 * 60; second += 1) {
      pause.record(429, 500);
      jest.advanceTimersByTime(1_000);
    }
    expect(lines).toHaveLength(2); // at 0 and 10 minutes
    jest.useRealTimers();
    expect(events).toBe(11 * 60);
  });

  it('is finished when its time has passed', async () => {
    const service = await simulator({ users: people });
    const headers = { 'retry-after': '1' };
    service.faults.add({ operation: 'list', kind: 'status', status: 503, headers, times: 1 });
    const { service: debate, health } = await runtime(service);
    await debate.listUsers(); // the second attempt, after the pause
    expect(await health.check()).toMatchObject({ state: 'up', problems: [] });
  });

  it.each<[Operation, string]>([
    ['delete', 'an erasure'],
    ['logout', 'a logout'],
  ])('with a 503 to “%s” holds back every erasure and every logout, and not %s alone', async (operation) => {
    const service = await simulator({ users: people });
    const headers = { 'retry-after': '2' };
    service.faults.add({ operation, kind: 'status', status: 503, headers, times: 1 });
    const { service: debate, events, erasures } = await runtime(service);
    const requested = firstValueFrom(
      events.events$.pipe(filter(({ type }) => type === 'service-pause-requested')),
      { defaultValue: undefined },
    );
    if (operation === 'delete') await erasures.request({ uid: 'alice', mode: 'delete' });
    else await debate.logoutUser('alice');
    await requested;
    const before = service.received.all.length;
    await debate.logoutUser('carol');
    await erasures.request({ uid: 'bob', mode: 'delete' });
    await service.received.waitFor('delete', { count: operation === 'delete' ? 3 : 1, timeoutMs: 20_000 });
    await service.received.waitFor('logout', { count: 3, timeoutMs: 20_000 });
    const pausedAt = service.received.all[before - 1]?.at ?? Infinity;
    const after = service.received.all.slice(before);
    expect(after.length).toBeGreaterThan(2);
    for (const { at } of after) expect(at - pausedAt).toBeGreaterThanOrEqual(1_990);
  });

  it('refuses a walk over the users that begins, or waits for a slot, while it lasts', async () => {
    const service = await simulator({ users: people });
    const rateLimit = { requests: 2, perMs: 3_000 };
    const { service: debate } = await runtime(service, { http: { rateLimit } });
    const walk = (): Promise<unknown> => errorOf(debate.users()[Symbol.asyncIterator]().next());
    await debate.listUsers();
    service.faults.add({ operation: 'list', kind: 'status', status: 429, headers: years });
    const paused = errorOf(debate.listUsers());
    const refused = { code: 'ERR_DEBATE_SPACE_RATE_LIMITED', retryAfterMs: expect.any(Number) };
    expect(await walk()).toMatchObject(refused); // both slots were taken when it began
    await paused;
    expect(await walk()).toMatchObject(refused);
    expect(service.received.of('list')).toHaveLength(2);
  });

  it('with a 429 to an operation on users does not hold back the logouts, which have no such limit', async () => {
    const service = await simulator({ users: people });
    service.faults.add({ operation: 'list', kind: 'status', status: 429, headers: years });
    const { service: debate } = await runtime(service);
    await errorOf(debate.listUsers());
    await debate.logoutUser('alice');
    await service.received.waitFor('logout');
  });
});
