import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { ServerClock } from './server-calls.js';

const START = 1_750_000_000_000;

describe('the clock of a server', () => {
  let machine: number;
  let server: number;
  /** How long a question and its answer take. */
  let delays: [question: number, answer: number];
  let clock: ServerClock;

  beforeEach(() => {
    machine = 1_000;
    server = START;
    delays = [0, 0];
    jest.spyOn(performance, 'now').mockImplementation(() => machine);
    clock = new ServerClock(() => {
      pass(delays[0]);
      const read = server;
      pass(delays[1]);
      return Promise.resolve(read);
    });
  });
  afterEach(() => {
    clock.stop();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  function pass(ms: number): void {
    machine += ms;
    server += ms;
  }

  it('is that of the server, whatever the clock of this machine says', async () => {
    await clock.measure();
    jest.spyOn(Date, 'now').mockReturnValue(0);
    pass(1_234.5);
    expect(clock.now()).toBe(START + 1_234);
  });

  it('is off by half the round trip at most, until a faster one', async () => {
    delays = [0, 100];
    await clock.measure();
    expect(clock.now()).toBe(server - 50);
    delays = [2, 2];
    await clock.measure();
    expect(clock.now()).toBe(server - 2);
  });

  it('is not spoiled by a slow answer', async () => {
    await clock.measure();
    delays = [0, 4_000];
    await clock.measure();
    expect(clock.now()).toBe(server);
  });

  it('follows a server that is put forward', async () => {
    await clock.measure();
    server += 3_600_000;
    await clock.measure();
    expect(clock.now()).toBe(server);
  });

  it('does not go back with the server, but runs at half speed until the server has caught up', async () => {
    await clock.measure();
    pass(10_000);
    expect(clock.now()).toBe(START + 10_000);
    server -= 4_000;
    await clock.measure();
    expect(clock.now()).toBe(START + 10_000);
    pass(2_000);
    expect(clock.now()).toBe(START + 11_000);
    pass(6_000);
    expect(clock.now()).toBe(START + 14_000);
    expect(clock.now()).toBe(server);
  });

  it('does not go back either when fake timers replace the clock of the process', async () => {
    await clock.measure();
    const before = clock.now();
    machine = 0;
    expect(clock.now()).toBe(before);
    machine = 10;
    expect(clock.now()).toBe(before + 5);
  });

  it('does not start without the time of the server', async () => {
    const contained = jest.fn();
    const away = new ServerClock(() => Promise.reject(new Error('away')));
    await expect(away.start(contained)).rejects.toThrow('away');
    const odd = new ServerClock(() => Promise.resolve(NaN));
    await expect(odd.start(contained)).rejects.toThrow(TypeError);
  });

  it('goes on by the last measurement when a later one fails', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    let isAway = false;
    const read = () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(server));
    const alone = new ServerClock(read);
    await alone.start((work) => {
      work();
    });
    isAway = true;
    jest.advanceTimersByTime(30_000);
    pass(30_000);
    expect(alone.now()).toBe(server);
    alone.stop();
  });

  it('is measured every 30 s, by work that is contained, until it is stopped', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    const contained = jest.fn<(work: () => void) => void>();
    await clock.start(contained);
    jest.advanceTimersByTime(30_000);
    expect(contained).toHaveBeenCalledTimes(1);
    server += 5_000;
    contained.mock.calls[0]?.[0]();
    await Promise.resolve();
    await Promise.resolve();
    expect(clock.now()).toBe(server);
    clock.stop();
    jest.advanceTimersByTime(60_000);
    expect(contained).toHaveBeenCalledTimes(1);
  });
});
