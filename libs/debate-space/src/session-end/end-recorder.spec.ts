import { expect, it } from '@jest/globals';
import { memoryQueue } from '../../../../test/support/outbox-engines.js';
import { Secret } from '../secret.js';
import { EndRecorder } from './end-recorder.js';

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
  const recorder = new EndRecorder(outbox, new Secret('key of a hash'), () => undefined, { leaseMs: 300 });

  const held = await recorder.hold('alice', 'destroyed', 's1');
  await outlived;

  expect(await outbox.claim(10, 1_000)).toEqual([]);
  await held?.cancel();
  expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
});
