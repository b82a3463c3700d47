import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { memoryQueue } from '../../../../test/support/outbox-engines.js';
import { Containment } from '../containment.js';
import type { DebateSpaceEvent } from '../debate-space-event.js';
import { Secret } from '../secret.js';
import { EndRecorder } from './end-recorder.js';
import { Endings } from './endings.js';
import { StoreOperation } from './store-operation.js';

async function endingsOf(stored: ReadonlyMap<string, string>): Promise<{
  readonly endings: Endings;
  readonly hurry: AbortSignal;
  readonly ended: string[];
}> {
  const ended: string[] = [];
  const emit = (event: DebateSpaceEvent): void => {
    if (event.type === 'session-ended') ended.push(event.uid);
  };
  const recorder = new EndRecorder(memoryQueue(), new Secret('key of a hash'), emit);
  const hurry = new AbortController().signal;
  const user = (sid: string): Promise<string | undefined> => Promise.resolve(stored.get(sid));
  const containment = new Containment(emit);
  const endings = new Endings(recorder, { user, leftWith: () => undefined, graceMs: 10, hurry, containment });
  return { endings, hurry, ended };
}

const done = (): StoreOperation => {
  const operation = new StoreOperation();
  operation.end('done');
  return operation;
};

describe('endings', () => {
  it('of one session that overlap are one', async () => {
    const { endings, ended } = await endingsOf(new Map());
    const slow = new StoreOperation();
    endings.begin({ sid: 's1', uid: 'alice' }, 'user-removed', {}, slow);
    endings.begin({ sid: 's1', uid: 'alice' }, 'destroyed', {}, done());
    slow.end('done');
    await endings.decided();
    expect(ended).toEqual(['alice']);
  });

  it('that are decided are known, until the session is saved with its user again', async () => {
    const { endings } = await endingsOf(new Map());
    endings.begin({ sid: 's1', uid: 'alice' }, 'destroyed', {}, done());
    expect(endings.hasEnded('s1', 'alice')).toBe(false);
    await endings.decided();
    expect(endings.hasEnded('s1', 'alice')).toBe(true);
    expect(endings.hasEnded('s1', 'bob')).toBe(false);
    endings.saved('s1', 'alice', undefined);
    expect(endings.hasEnded('s1', 'alice')).toBe(false);
  });

  it('leave no listener on the signal of the shutdown', async () => {
    const { endings, hurry, ended } = await endingsOf(new Map());
    for (let i = 0; i < 100; i += 1) {
      endings.begin({ sid: `s${i}`, uid: 'alice' }, 'destroyed', {}, done());
    }
    await endings.decided();
    expect(ended).toHaveLength(100);
    expect(getEventListeners(hurry, 'abort')).toEqual([]);
  });

  const failed = [
    { name: 'and left the session', stored: new Map([['s1', 'alice']]), ended: [] },
    { name: 'after it had its effect', stored: new Map(), ended: ['alice'] },
  ];
  it.each(failed)('by a call that failed $name: $ended', async ({ stored, ended: expected }) => {
    const { endings, ended } = await endingsOf(stored);
    const operation = new StoreOperation();
    endings.begin({ sid: 's1', uid: 'alice' }, 'destroyed', {}, operation);
    operation.end('failed');
    await endings.decided();
    expect(ended).toEqual(expected);
  });
});
