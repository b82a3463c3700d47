import { describe, expect, it, jest } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import { EndRecorder, type EndRecorderOptions } from './end-recorder.js';

it('an end that is undecided for longer than the lease of its hold is not delivered', async () => {
  const outbox = memoryQueue();
  const extend = outbox.extend.bind(outbox);
  let extensions = 0;
  let extendedOften = (): void => undefined;
  const outlived = new Promise<void>((resolve) => {
    extendedOften = resolve;
  });
  outbox.extend = (id, leaseMs) => {
    extensions += 1;
    if (extensions === 4) extendedOften(); // every third of the lease
    return extend(id, leaseMs);
  };
  const recorder = new EndRecorder(outbox, () => undefined, { leaseMs: 300 });

  const held = await recorder.hold('alice', 'destroyed');
  await outlived;

  expect(await outbox.claim(10, 1_000)).toEqual([]);
  await held?.cancel();
  expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
});

describe('an end that nobody decides', () => {
  /** @returns how often the lease of a hold is renewed, and whether it has become due in the end */
  async function fateOfHold(
    options: EndRecorderOptions,
    isOpen: () => boolean,
    then?: (recorder: EndRecorder) => void,
  ): Promise<{ readonly renewals: number; readonly due: readonly string[] }> {
    const outbox = memoryQueue();
    const extend = jest.spyOn(outbox, 'extend');
    const recorder = new EndRecorder(outbox, () => undefined, {
      leaseMs: 600,
      ...options,
    });
    await recorder.hold('alice', 'explicit', isOpen);
    then?.(recorder);
    await pause(1_600);
    const claimed = await outbox.claim(10, 1_000);
    return { renewals: extend.mock.calls.length, due: claimed.map(({ entry }) => entry.uid) };
  }

  it('is delivered after the longest hold, though its request is still open', async () => {
    const { renewals, due } = await fateOfHold({ maxHoldMs: 500 }, () => true);
    expect(renewals).toBeGreaterThan(0);
    expect(due).toEqual(['alice']);
  });

  it('is delivered after its lease when the response of its request is closed', async () => {
    expect(await fateOfHold({}, () => false)).toEqual({ renewals: 0, due: ['alice'] });
  });

  it('is delivered after its lease when the response of its request cannot be looked at', async () => {
    const isOpen = (): never => {
      throw new Error('of the host');
    };
    expect(await fateOfHold({}, isOpen)).toEqual({ renewals: 0, due: ['alice'] });
  });

  it('is renewed no more when the app shuts down', async () => {
    const closing = (recorder: EndRecorder): void => {
      recorder.close();
    };
    expect(await fateOfHold({}, () => true, closing)).toEqual({ renewals: 0, due: ['alice'] });
  });

  it('is renewed while its request is open', async () => {
    const { due } = await fateOfHold({}, () => true);
    expect(due).toEqual([]);
  });
});

describe('an end whose hold would be lost with the process', () => {
  function recording(): { readonly outbox: ReturnType<typeof memoryQueue>; readonly recorder: EndRecorder } {
    const outbox = memoryQueue();
    const options = { durable: false, leaseMs: 300 };
    return {
      outbox,
      recorder: new EndRecorder(outbox, () => undefined, options),
    };
  }

  it('is stored with its verdict, for which no response waits', async () => {
    const { outbox, recorder } = recording();
    const hold = jest.spyOn(outbox, 'hold');
    const held = recorder.hold('alice', 'destroyed');
    expect(held).not.toBeInstanceOf(Promise);
    expect(hold).not.toHaveBeenCalled();
    await (await held)?.release([]);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
  });

  it('is never stored when the session goes on', async () => {
    const { outbox, recorder } = recording();
    const hold = jest.spyOn(outbox, 'hold');
    await (await recorder.hold('alice', 'destroyed'))?.cancel();
    recorder.close();
    expect(hold).not.toHaveBeenCalled();
  });

  it('is delivered after a lease when nobody decides it', async () => {
    const { outbox, recorder } = recording();
    await recorder.hold('alice', 'destroyed', () => false);
    await pause(800);
    expect((await outbox.claim(10, 1_000)).map(({ entry }) => entry.uid)).toEqual(['alice']);
  });

  it('is stored when the app shuts down', async () => {
    const { outbox, recorder } = recording();
    await recorder.hold('alice', 'destroyed');
    recorder.close();
    expect(await outbox.counts()).toEqual({ held: 1, pending: 0, parked: 0 });
  });
});
