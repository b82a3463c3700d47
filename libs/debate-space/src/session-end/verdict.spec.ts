import { expect, it } from '@jest/globals';
import { Containment } from '../containment.js';
import type { SessionRequest } from './session-request.js';
import { StoreOperation } from './store-operation.js';
import { hasEnded, type VerdictContext } from './verdict.js';

/** A request whose response the test closes. */
class Leaving {
  sessionID = 's1';
  hasLetGo = true;
  isFinished = false;
  isCommitted = false;
  #listener: () => void = () => undefined;

  get isClosed(): boolean {
    return this.isFinished;
  }
  onClose(_: Containment, listener: () => void): boolean {
    this.#listener = listener;
    return true;
  }
  close(): void {
    this.isFinished = true;
    this.#listener();
  }
}

it('the session of a user that another request renews while the store is read for the first has not ended', async () => {
  const [first, other] = [new Leaving(), new Leaving()];
  const rows = new Map([['s2', 'alice']]);
  const context: VerdictContext = {
    graceMs: 1_000,
    hurry: new AbortController().signal,
    containment: new Containment(() => undefined),
    leftWith: (requests) => (requests.length === 2 ? 's2' : 's1'),
    user: async (sid) => {
      if (!other.isFinished) other.close(); // while the store answers
      await new Promise(setImmediate);
      return rows.get(sid);
    },
  };
  const destroyed = new StoreOperation();
  destroyed.end('done');
  const actors = new Set([first, other] as unknown as SessionRequest[]);
  const verdict = hasEnded({ sid: 's1', uid: 'alice', actors, holders: new Set(), calls: [destroyed], savedBack: false }, context); // prettier-ignore
  await new Promise(setImmediate);
  first.close();
  expect(await verdict).toBe(false);
});
