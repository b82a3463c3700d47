import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { memoryStorage } from 'durable-jobs';
import { Containment } from '../async/containment.js';
import { Secret } from '../secrets/secret.js';
import type { FoundSession } from '../session-end/session-end.js';
import { RegistryWriter } from './registry-writer.js';
import { REPORT_WITHIN_MS, SessionRegistry } from './session-registry.js';

const HOUR = 3_600_000;
const LONG = 60_000;

let registry: SessionRegistry;
let faults: string[];
/** The session as the store has it. */
let stored: readonly FoundSession[];
let reads: number;
/** What the clock of the storage is ahead. */
let movedOn: number;
let one: RegistryWriter;
let other: RegistryWriter;

beforeEach(async () => {
  [faults, stored, reads, movedOn] = [[], [], 0, 0];
  const context = { namespace: 'app', families: ['session'], contained: () => undefined };
  const storage = await memoryStorage().open(context);
  const now = storage.now.bind(storage);
  storage.now = () => now() + movedOn;
  registry = new SessionRegistry(storage, [new Secret('a storage key of a test')]);
  [one, other] = [writer(), writer()];
});

/** An instance of the app. */
function writer(): RegistryWriter {
  const containment = new Containment((event) => event.type === 'fault' && faults.push(event.where));
  const find = (): Promise<readonly FoundSession[]> => {
    reads += 1;
    return Promise.resolve(stored);
  };
  return new RegistryWriter(registry, find, containment);
}

const inAnHour = (): number => Date.now() + HOUR;
const idle = (): Promise<unknown> => Promise.all([one.idle(), other.idle()]);
/** @returns how often the end was reported */
async function reportsOf(...ends: readonly RegistryWriter[]): Promise<number> {
  let reports = 0;
  for (const instance of ends) await instance.gone('s', 'alice', () => (reports += 1));
  await idle();
  return reports;
}
async function sessionsAfter(ms: number): Promise<readonly string[]> {
  movedOn += ms;
  return (await registry.claimExpired(10, LONG)).map(({ uid }) => uid);
}

describe('a session that is used', () => {
  it('is written once, and again when its date has moved by a minute, or to an earlier time', async () => {
    const put = jest.spyOn(registry, 'put');
    const expiresAt = inAnHour();
    for (const laterMs of [0, 10_000, 59_000, 61_000, 62_000, -1_800_000])
      one.seen('s', 'alice', expiresAt + laterMs);
    await idle();
    expect(put).toHaveBeenCalledTimes(3);
    expect(await sessionsAfter(HOUR / 2 + LONG)).toEqual(['alice']);
  });

  it('is looked for a day later when its cookie has no end', async () => {
    one.seen('s', 'alice', undefined);
    await idle();
    expect(await sessionsAfter(23 * HOUR)).toEqual([]);
    expect(await sessionsAfter(2 * HOUR)).toEqual(['alice']);
  });

  it('is written by the next request when the registry did not answer', async () => {
    jest.spyOn(registry, 'put').mockRejectedValueOnce(new Error('down'));
    one.seen('s', 'alice', inAnHour());
    await idle();
    one.seen('s', 'alice', inAnHour());
    await idle();
    expect(faults).toEqual(['session registry']);
    expect(await sessionsAfter(HOUR + LONG)).toEqual(['alice']);
  });

  it('causes no error in its request when the clock of the storage fails', () => {
    jest.spyOn(registry, 'now').mockImplementation(() => {
      throw new Error('broken');
    });
    one.seen('s', 'alice', inAnHour());
    expect(faults).toEqual(['session registry']);
  });
});

describe('a session that has ended', () => {
  beforeEach(async () => {
    for (const instance of [one, other]) instance.seen('s', 'alice', inAnHour());
    await idle();
    movedOn = 10;
  });

  it('is reported by one of two instances that end it', async () => {
    expect(await reportsOf(one, other)).toBe(1);
    expect(await sessionsAfter(2 * HOUR)).toEqual([]);
  });

  it('is not reported when its user has gone on with another session, neither now nor when it would expire', async () => {
    await one.gone('s', 'alice');
    await idle();
    expect(await sessionsAfter(2 * HOUR)).toEqual([]);
  });

  it('is not registered again by a request that was under way, at either instance', async () => {
    expect(await reportsOf(one)).toBe(1);
    for (const instance of [one, other]) instance.seen('s', 'alice', inAnHour() + LONG);
    await idle();
    expect(await sessionsAfter(2 * HOUR)).toEqual([]);
  });

  it('is registered and reported again when the store has it with its user, at either instance', async () => {
    expect(await reportsOf(one)).toBe(1);
    stored = [{ uid: 'alice', session: {} }];
    for (const instance of [one, other]) {
      instance.seen('s', 'alice', inAnHour() + LONG);
      await idle();
      movedOn += 10;
      expect(await reportsOf(instance)).toBe(1);
    }
    expect(reads).toBeGreaterThan(0);
  });

  it('is registered again at once when the same user logs in to it again', async () => {
    expect(await reportsOf(one)).toBe(1);
    stored = [{ uid: 'alice', session: {} }];
    one.seen('s', 'alice', inAnHour());
    await idle();
    expect(await sessionsAfter(HOUR + LONG)).toEqual(['alice']);
  });

  it('is reported after the next login although its instance did not hear of the first end', async () => {
    expect(await reportsOf(one)).toBe(1);
    movedOn += 10;
    other.seen('s', 'alice', inAnHour()); // too soon to be written
    expect(await reportsOf(other)).toBe(1);
  });

  it('is given to a sweep when its process dies before the report is done', async () => {
    void one.gone('s', 'alice', () => new Promise(() => undefined));
    await idle();
    expect(await sessionsAfter(REPORT_WITHIN_MS - LONG / 10)).toEqual([]);
    expect(await sessionsAfter(LONG)).toEqual(['alice']);
  });

  it('is given to a sweep when its report fails', async () => {
    await one.gone('s', 'alice', () => Promise.reject(new Error('of the outbox')));
    await idle();
    expect(faults).toEqual(['session end']);
    expect(await sessionsAfter(REPORT_WITHIN_MS + 1)).toEqual(['alice']);
  });

  it.each([
    { name: 'fails', answer: () => Promise.reject(new Error('down')) },
    { name: 'does not answer', answer: () => new Promise<never>(() => undefined) },
  ])('is reported when the registry $name', async ({ answer }) => {
    jest.spyOn(registry, 'end').mockImplementationOnce(answer);
    const report = jest.fn();
    await one.gone('s', 'alice', report);
    expect(report).toHaveBeenCalledTimes(1);
  });

  it.each(['end', 'reported'] as const)(
    'is removed when the registry answers again after it failed to note %s',
    async (method) => {
      jest.spyOn(registry, method).mockRejectedValueOnce(new Error('down'));
      expect(await reportsOf(one)).toBe(1);
      one.seen('another', 'bob', inAnHour());
      await idle();
      expect(await sessionsAfter(2 * HOUR)).toEqual(['bob']);
    },
  );
});
