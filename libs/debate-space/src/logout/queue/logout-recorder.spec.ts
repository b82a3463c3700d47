import { describe, expect, it, jest } from '@jest/globals';
import type { SessionEnd } from '../../session-end/session-end.js';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import type { DebateSpaceEvent } from '../../events.js';
import { LogoutRecorder } from './logout-recorder.js';

function recording(): {
  readonly outbox: ReturnType<typeof memoryQueue>;
  readonly recorder: LogoutRecorder;
  readonly events: DebateSpaceEvent[];
} {
  const outbox = memoryQueue();
  const events: DebateSpaceEvent[] = [];
  return { outbox, recorder: new LogoutRecorder(outbox, (event) => events.push(event)), events };
}

const endOf = (uid: string): SessionEnd => ({ uid, reason: 'destroyed', endedAt: new Date() });

describe('the end of a session', () => {
  it('is stored before the call returns, where the storage is synchronous', async () => {
    const { outbox, recorder } = recording();
    expect(recorder.record(endOf('alice'))).toBeUndefined();
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
  });

  it('is a fault, and not stored, for a uid that the service cannot know', async () => {
    const { outbox, recorder, events } = recording();
    await recorder.record(endOf('..'));
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
    expect(events).toEqual([{ type: 'fault', where: 'the uid has a dot segment', error: 'InvalidUidError' }]);
  });

  it('is a fault, and no rejection, where the outbox fails, alone and with many others', async () => {
    const { outbox, recorder, events } = recording();
    jest.spyOn(outbox, 'add').mockImplementation(() => {
      throw new TypeError('of the outbox');
    });
    await Promise.all(Array.from({ length: 6 }, async () => recorder.record(endOf('alice'))));
    expect(events.filter(({ type }) => type === 'fault')).toHaveLength(5);
  });
});

it('the ends of one turn of the event loop are stored a hundred at a time, but for the first four', async () => {
  const { outbox, recorder } = recording();
  const batches: number[] = [];
  const add = outbox.add.bind(outbox);
  outbox.add = (entries) => {
    batches.push(entries.length);
    return add(entries);
  };
  const record = (count: number): Promise<unknown> =>
    Promise.all(Array.from({ length: count }, async (_, n) => recorder.record(endOf(`user ${n}`))));
  await record(230);
  expect(batches).toEqual([1, 1, 1, 1, 100, 100, 26]);
  await record(2);
  expect(batches.slice(-2)).toEqual([1, 1]);
  expect(await outbox.counts()).toEqual({ pending: 232, parked: 0 });
});

it('a logout that the host requests is refused when the app is shutting down', async () => {
  const { outbox, recorder } = recording();
  await recorder.request('alice');
  recorder.close();
  await expect(recorder.request('bob')).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED' });
  expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
});
