import { describe, expect, it, jest } from '@jest/globals';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import type { DebateSpaceEvent } from '../../events.js';
import { EndRecorder, type EndRecorderOptions, type SessionEnd } from './end-recorder.js';

function recording(options?: EndRecorderOptions): {
  readonly outbox: ReturnType<typeof memoryQueue>;
  readonly recorder: EndRecorder;
  readonly events: DebateSpaceEvent[];
} {
  const outbox = memoryQueue();
  const events: DebateSpaceEvent[] = [];
  return { outbox, recorder: new EndRecorder(outbox, (event) => events.push(event), options), events };
}

const endOf = (uid: string, at = performance.now()): SessionEnd => ({ uid, reason: 'destroyed', at });

describe('the end of a session', () => {
  it('is stored before the call returns, where the storage is synchronous', async () => {
    const { outbox, recorder } = recording();
    expect(recorder.record(endOf('alice'), [])).not.toBeInstanceOf(Promise);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
  });

  it('is stored once for each user and request, unless it came after the report', async () => {
    const { outbox, recorder } = recording();
    const response = {};
    const ends = ['alice', 'alice', 'bob'].map((uid) => endOf(uid));
    for (const end of ends) await recorder.record(end, [response]);
    expect(await outbox.counts()).toEqual({ pending: 2, parked: 0 });
    const next = endOf('alice', performance.now() + 1);
    await recorder.record(next, [response], next.at);
    expect(await outbox.counts()).toEqual({ pending: 3, parked: 0 });
  });

  it('is a fault, and not stored, for a uid that the service cannot know', async () => {
    const { outbox, recorder, events } = recording();
    await recorder.record(endOf('..'), []);
    await recorder.recordWithOthers(endOf('..'));
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
    const fault = { type: 'fault', where: 'the uid has a dot segment', error: 'InvalidUidError' };
    expect(events).toEqual([fault, fault]);
  });

  it('is a fault, and no rejection, where the outbox fails', async () => {
    const { outbox, recorder, events } = recording();
    jest.spyOn(outbox, 'add').mockImplementation(() => {
      throw new TypeError('of the outbox');
    });
    await recorder.record(endOf('alice'), []);
    await recorder.recordWithOthers(endOf('alice'));
    expect(events.filter(({ type }) => type === 'fault')).toHaveLength(2);
  });

  it('is not stored when it is decided after the next login, with onRelogin drop', async () => {
    const { outbox, recorder, events } = recording({ onRelogin: 'drop' });
    const end = endOf('alice');
    recorder.loggedIn('alice', end.at + 1);
    await recorder.record(end, []);
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
    expect(events.map(({ type }) => type)).toEqual(['session-ended', 'logout-superseded']);
  });
});

it('the ends of many sessions are stored a hundred at a time, each batch in a turn of its own', async () => {
  const { outbox, recorder } = recording();
  const batches: number[] = [];
  let turns = 0;
  const turnOf: number[] = [];
  const count = (): void => {
    turns += 1;
    if (batches.length < 3) setImmediate(count);
  };
  setImmediate(count);
  const add = outbox.add.bind(outbox);
  outbox.add = (entries) => {
    batches.push(entries.length);
    turnOf.push(turns);
    return add(entries);
  };
  await Promise.all(Array.from({ length: 250 }, (_, n) => recorder.recordWithOthers(endOf(`user ${n}`))));
  expect(batches).toEqual([100, 100, 50]);
  expect(new Set(turnOf).size).toBe(3);
  expect(await outbox.counts()).toEqual({ pending: 250, parked: 0 });
});

it('a logout that the host requests is refused when the app is shutting down', async () => {
  const { outbox, recorder } = recording();
  await recorder.request('alice');
  recorder.close();
  await expect(recorder.request('bob')).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED' });
  expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
});
