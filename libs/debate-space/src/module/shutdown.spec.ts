import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceEvent } from '../events.js';
import { Shutdown } from './shutdown.js';

describe('the shutdown', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('ends within nine seconds when no step of it answers', async () => {
    const called: string[] = [];
    const never = (name: string) => (): Promise<void> => {
      called.push(name);
      return new Promise(() => undefined);
    };
    const part = { close: never('close'), idle: never('idle'), drain: never('drain'), flush: never('flush') };
    const stats = { stats: never('stats'), count: never('count') };
    const application = {
      emit: (event: DebateSpaceEvent) => called.push(event.type),
      options: { worker: true, storage: { durable: false } },
      shutdown: new AbortController(),
      events: { complete: () => called.push('complete') },
    };
    const parts = [application, part, part, part, { ...part, unpersistedCount: 0 }, stats, stats, part, part];
    const shutdown = new Shutdown(...(parts as unknown as ConstructorParameters<typeof Shutdown>));
    let isDone = false;
    const done = shutdown.run().then(() => (isDone = true));
    await jest.advanceTimersByTimeAsync(8_900);
    expect(isDone).toBe(false);
    await jest.advanceTimersByTimeAsync(600);
    expect(isDone).toBe(true);
    await done;
    expect(called.filter((name) => name === 'close')).toHaveLength(4); // the storage is the last of them
    expect(called.at(-1)).toBe('complete');
  });
});
