import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import { CircuitBreaker, JobRunner } from 'durable-jobs';
import { faultEvents } from '../../async/containment.js';
import type { DebateSpaceEvent } from '../../events.js';
import type { LogoutEntry } from '../logout.js';
import { FallbackQueue } from '../queue/fallback-queue.js';
import type { LogoutQueue } from '../queue/logout-queue.js';
import type { DeliveryAnswer } from './delivery-policy.js';
import { LogoutDelivery, serviceEvents } from './logout-delivery.js';

const ok: DeliveryAnswer = { status: 200 };
const down: DeliveryAnswer = { reason: 'ECONNREFUSED' };
const LONG = 60_000;

/** A runner of logouts over a queue in memory, with everything that can be seen of it. */
class Bench extends EventEmitter<{ call: []; event: [DebateSpaceEvent] }> {
  readonly events: DebateSpaceEvent[] = [];
  /** The uids in the order of the attempts, and when. */
  readonly calls: { readonly uid: string; readonly at: number }[] = [];
  underWay = 0;
  mostUnderWay = 0;
  readonly runner: JobRunner;
  readonly queue: FallbackQueue;

  constructor(
    readonly outbox: LogoutQueue,
    deliver: (call: number, entry: LogoutEntry) => DeliveryAnswer | Promise<DeliveryAnswer>,
    { concurrency = 4, giveUpAfterMs = LONG } = {},
  ) {
    super();
    const emit = (event: DebateSpaceEvent): void => {
      this.events.push(event);
      this.emit('event', event);
    };
    const send = async (entry: LogoutEntry): Promise<DeliveryAnswer> => {
      this.calls.push({ uid: entry.uid, at: performance.now() });
      this.emit('call');
      this.underWay += 1;
      this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
      try {
        return await deliver(this.calls.length - 1, entry);
      } finally {
        this.underWay -= 1;
      }
    };
    const queue = (this.queue = new FallbackQueue(outbox, 250, emit));
    const breaker = new CircuitBreaker(concurrency, serviceEvents(emit));
    this.runner = new JobRunner(faultEvents(emit));
    this.runner.add(new LogoutDelivery(queue, breaker, { send }, giveUpAfterMs, emit));
    opened.push(this.runner);
  }

  /** @returns how many logouts are left pending */
  async drain(ms: number): Promise<number> {
    await this.runner.drain(ms);
    return (await this.outbox.counts()).pending;
  }

  async add(...uids: string[]): Promise<void> {
    for (const uid of uids)
      await this.outbox.add([{ id: `of ${uid}`, uid, reason: 'destroyed', endedAt: Date.now() }]);
  }

  of<T extends DebateSpaceEvent['type']>(type: T): Extract<DebateSpaceEvent, { type: T }>[] {
    return this.events.filter(
      (event): event is Extract<DebateSpaceEvent, { type: T }> => event.type === type,
    );
  }

  /** Resolves when this many events of the type have come. */
  async until(type: DebateSpaceEvent['type'], count = 1): Promise<void> {
    while (this.of(type).length < count) await once(this, 'event');
  }
}

const opened: JobRunner[] = [];
const memory = memoryQueue;
/** An outbox in memory, with some of its methods replaced. */
function broken(replaced: (working: LogoutQueue) => Partial<LogoutQueue>): LogoutQueue {
  const outbox = memory();
  const methods = replaced(outbox);
  return new Proxy(outbox, {
    get: (target, name) => {
      const method: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name);
      return typeof method === 'function' ? (method.bind(target) as unknown) : method;
    },
  });
}
const uids = (count: number): string[] => Array.from({ length: count }, (_, n) => `u-${n}`);

describe('logouts in the job runner', () => {
  afterEach(async () => {
    jest.restoreAllMocks();
    for (const runner of opened.splice(0)) await runner.drain(0);
  });

  it('delivers each logout once, those of before the start and those that come later', async () => {
    const bench = new Bench(memory(), () => ok);
    await bench.add('before');
    bench.runner.start();
    await bench.until('logout-delivered');
    await bench.add('after');
    await bench.until('logout-delivered', 2);
    expect(bench.calls.map(({ uid }) => uid)).toEqual(['before', 'after']);
    expect(bench.of('logout-delivered')).toMatchObject([
      { id: 'of before', uid: 'before', attempts: 1 },
      { id: 'of after', uid: 'after', attempts: 1 },
    ]);
    expect(await bench.outbox.counts()).toEqual({ pending: 0, parked: 0 });
  });

  it.each([1, 3, 8])('has at most %d under way, and that many when there is work', async (concurrency) => {
    const bench = new Bench(memory(), () => sleep(2, ok), { concurrency });
    await bench.add(...uids(30));
    bench.runner.start();
    expect(await bench.drain(LONG)).toBe(0);
    expect(bench.mostUnderWay).toBe(concurrency);
    expect(bench.calls).toHaveLength(30);
  });

  it('notes what came of an attempt even when the pause cannot be noted', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0.99);
    const outbox = broken(() => ({ pause: () => Promise.reject(new TypeError('gone')) }));
    const bench = new Bench(outbox, () => ({ status: 429 }));
    await bench.add('a');
    bench.runner.start();
    await bench.until('logout-retrying');
    expect(bench.of('fault')).toMatchObject([{ where: 'outbox', error: 'TypeError' }]);
    expect(await bench.outbox.claim(10)).toEqual([]);
  });

  it('pauses the whole queue when the service answers 429', async () => {
    const bench = new Bench(memory(), (call) => (call === 0 ? { status: 429, retryAfterMs: 200 } : ok), {
      concurrency: 1,
    });
    await bench.add('a', 'b', 'c');
    bench.runner.start();
    await bench.until('logout-delivered', 3);
    const [refused = 0, ...others] = bench.calls.map(({ at }) => at);
    expect(others).toHaveLength(3);
    expect(Math.min(...others) - refused).toBeGreaterThanOrEqual(199);
    expect(bench.of('logout-retrying')).toMatchObject([{ uid: 'a', attempts: 1, cause: '429' }]);
    expect(bench.of('service-down')).toEqual([]);
  });

  it('sends one probe at a time while the service is down, and says so once at each turn', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    let service = down;
    const bench = new Bench(memory(), () => sleep(5, service), { concurrency: 4 });
    await bench.add(...uids(12));
    bench.runner.start();
    await bench.until('service-down');
    await bench.until('logout-retrying', bench.calls.length); // those that were under way have failed
    const before = bench.calls.length;
    bench.mostUnderWay = 0;
    await bench.until('logout-retrying', before + 2);
    service = ok;
    const probes = await new Promise<number>((resolve) => {
      bench.on('event', ({ type }) => {
        if (type === 'service-up') resolve(bench.calls.length - before);
      });
    });
    expect(bench.mostUnderWay).toBe(1);
    expect(probes).toBe(3); // two in vain, one that gets through
    expect(await bench.drain(LONG)).toBe(0);
    expect(bench.mostUnderWay).toBe(4);
    expect(bench.of('service-down')).toEqual([{ type: 'service-down', cause: 'ECONNREFUSED' }]);
    expect(bench.of('service-up')).toHaveLength(1);
  });

  it('does not take the parking of an old entry for a sign of life', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const bench = new Bench(memory(), () => down, { giveUpAfterMs: 1 });
    await bench.add(...uids(6));
    await sleep(5);
    bench.runner.start();
    await bench.until('logout-parked', 6);
    expect(bench.of('service-up')).toEqual([]);
    expect(bench.of('service-down')).toHaveLength(1);
  });

  it('delivers a backlog at full pace while one answer in ten is 503 and one in twenty is cut off', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const answers = (call: number): DeliveryAnswer =>
      call % 10 === 3 ? { status: 503 } : call % 20 === 7 ? { reason: 'ECONNRESET' } : ok;
    const bench = new Bench(memory(), (call) => sleep(1, answers(call)), { concurrency: 4 });
    await bench.add(...uids(200));
    bench.runner.start();
    await bench.until('logout-delivered', 200);
    expect(bench.of('service-down')).toEqual([]);
    expect(bench.mostUnderWay).toBe(4);
  });

  it('does not blame the service for what fails on this side', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const bench = new Bench(memory(), (call) => (call < 2 ? { reason: 'x', local: true } : ok));
    await bench.add('a');
    bench.runner.start();
    await bench.until('logout-delivered');
    expect(bench.events.map(({ type }) => type)).toEqual([
      'logout-retrying',
      'logout-retrying',
      'logout-delivered',
    ]);
  });

  it('takes no failure on this side for a service that is up again', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const answers = [down, down, down, down, down, { reason: 'x', local: true }, ok];
    const bench = new Bench(memory(), (call) => answers[call] ?? ok);
    await bench.add('a');
    bench.runner.start();
    await bench.until('logout-delivered');
    expect(bench.events.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 4 }, () => 'logout-retrying'),
      'service-down',
      'logout-retrying',
      'logout-retrying',
      'service-up',
      'logout-delivered',
    ]);
  });

  it('parks what is refused for the third time, with the hint, and goes on', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const bench = new Bench(memory(), (_call, { uid }) => (uid === 'bad' ? { status: 400 } : ok));
    await bench.add('bad', 'good');
    bench.runner.start();
    await bench.until('logout-parked');
    expect(bench.calls.filter(({ uid }) => uid === 'bad')).toHaveLength(3);
    expect(bench.of('logout-parked')).toMatchObject([{ uid: 'bad', attempts: 3, cause: '400' }]);
    expect(bench.of('logout-parked')[0]?.hint).toContain('secretKey');
    expect(bench.of('logout-delivered')).toMatchObject([{ uid: 'good' }]);
    expect(await bench.outbox.counts()).toEqual({ pending: 0, parked: 1 });
  });

  it('does not send again what is still under way when its lease has run out', async () => {
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const slow = (_: number, { uid }: LogoutEntry) => (uid === 'slow' ? answered.then(() => ok) : ok);
    const quick = broken((working) => ({ claim: (limit) => working.claim(limit, 20) }));
    const bench = new Bench(quick, slow);
    await bench.add('slow');
    bench.runner.start();
    for (let n = 1; n < 5; n += 1) {
      await sleep(30); // the lease runs out
      await bench.add(`quick-${n}`);
      await bench.until('logout-delivered', n);
    }
    answer();
    await bench.until('logout-delivered', 5);
    expect(bench.calls.filter(({ uid }) => uid === 'slow')).toHaveLength(1);
    expect(bench.of('logout-delivered')).toHaveLength(5);
  });

  describe('drain()', () => {
    it('ends immediately when nothing is pending', async () => {
      const bench = new Bench(memory(), () => ok);
      bench.runner.start();
      expect(await bench.drain(LONG)).toBe(0);
    });

    it('waits for what is under way and for what still comes', async () => {
      const bench = new Bench(memory(), () => sleep(10, ok), { concurrency: 1 });
      await bench.add('a', 'b');
      bench.runner.start();
      const drained = bench.drain(LONG);
      await bench.add('late');
      expect(await drained).toBe(0);
      expect(bench.of('logout-delivered').map(({ uid }) => uid)).toEqual(['a', 'b', 'late']);
    });

    it('gives up at the deadline, with the count of what is left', async () => {
      const bench = new Bench(memory(), () => new Promise(() => undefined));
      await bench.add(...uids(7));
      bench.runner.start();
      expect(await bench.drain(30)).toBe(7);
    });

    it('does not wait for what is pending when the runner was never started', async () => {
      const bench = new Bench(memory(), () => ok);
      await bench.add('alice');
      const begun = performance.now();
      expect(await bench.drain(1_000)).toBe(1);
      expect(performance.now() - begun).toBeLessThan(500);
      expect(bench.calls).toEqual([]);
    });

    it('leaves what comes later where it is', async () => {
      const bench = new Bench(memory(), () => ok);
      bench.runner.start();
      await bench.drain(LONG);
      await bench.add('too late');
      await sleep(20);
      expect(bench.calls).toEqual([]);
      expect((await bench.outbox.counts()).pending).toBe(1);
    });
  });

  describe('with an outbox that fails', () => {
    const fail = (): never => {
      throw new TypeError('the disk is full');
    };
    const fault = { type: 'fault', where: 'outbox', error: 'TypeError' };

    it.each([
      ['throws', fail],
      ['rejects', () => Promise.reject(new TypeError('the disk is full'))],
    ])('says so when claiming %s, and tries again', async (_what, claim) => {
      let claims = 0;
      const outbox = broken((working) => ({
        claim: (limit) => (claims++ === 0 ? claim() : working.claim(limit)),
      }));
      const bench = new Bench(outbox, () => ok);
      await bench.add('a');
      bench.runner.start();
      await bench.until('logout-delivered');
      expect(bench.events[0]).toEqual(fault);
    });

    it.each(['finish', 'retry', 'park'] as const)('says so when %s throws, and goes on', async (method) => {
      const answers = { finish: ok, retry: { status: 425 }, park: { status: 403 } };
      const bench = new Bench(
        broken(() => ({ [method]: fail })),
        (_call, { uid }) => (uid === 'a' ? answers[method] : { status: method === 'finish' ? 403 : 200 }),
      );
      await bench.add('a', 'b');
      bench.runner.start();
      await bench.until(method === 'finish' ? 'logout-parked' : 'logout-delivered');
      await bench.until('fault');
      expect(bench.of('fault')).toEqual([fault]);
      expect(bench.calls.map(({ uid }) => uid).sort()).toEqual(['a', 'b']);
    });

    it.each([0, 1])(
      'delivers what is in memory before it stops, after %d failed attempts',
      async (failures) => {
        const reject = () => Promise.reject(new TypeError('the disk is full'));
        const outbox = broken(() => ({ add: fail, claim: reject, nextDueMs: reject }));
        const bench = new Bench(outbox, (call) => (call < failures ? { status: 425 } : ok));
        jest.spyOn(Math, 'random').mockReturnValue(0.1);
        bench.runner.start();
        await bench.until('fault');
        await bench.queue.add([{ id: 'a', uid: 'a', reason: 'destroyed', endedAt: Date.now() }]);
        await bench.runner.drain(LONG);
        expect(bench.of('logout-delivered')).toHaveLength(1);
        expect(bench.queue.unpersistedCount).toBe(0);
      },
    );

    it('says so when it cannot see what is due, and does not hold up the shutdown', async () => {
      const bench = new Bench(
        broken(() => ({ nextDueMs: fail })),
        () => ok,
      );
      bench.runner.start();
      expect(await bench.drain(LONG)).toBe(0);
      expect(bench.events.length).toBeGreaterThan(0);
      for (const event of bench.events) expect(event).toEqual(fault);
    });
  });
});
