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
    const application = {
      emit: (event: DebateSpaceEvent) => called.push(event.type),
      options: { worker: true, storage: { durable: false } },
      storage: { close: never('close'), counts: never('counts') },
      shutdown: new AbortController(),
      events: { complete: () => called.push('complete') },
    };
    const parts = [application, part, part, part, part];
    const shutdown = new Shutdown(...(parts as unknown as ConstructorParameters<typeof Shutdown>));
    let isDone = false;
    const done = shutdown.run().then(() => (isDone = true));
    await jest.advanceTimersByTimeAsync(8_900);
    expect(isDone).toBe(false);
    await jest.advanceTimersByTimeAsync(600);
    expect(isDone).toBe(true);
    await done;
    expect(called.filter((name) => name === 'close')).toHaveLength(4); // recorder, sessions, transport, storage
    expect(called.at(-1)).toBe('complete');
  });
});
