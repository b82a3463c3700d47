import { expect, it } from '@jest/globals';
import { Containment } from '../../async/containment.js';
import { afterResponse } from './end-tracker.js';
import type { CloseListener, SessionRequest } from './session-request.js';

const containment = new Containment(() => undefined);

function requestThatIs(state: 'open' | 'closed'): { readonly request: SessionRequest; close(): void } {
  const listeners: CloseListener[] = [];
  const onClose = (listener: CloseListener): boolean => state === 'open' && listeners.push(listener) > 0;
  const close = (): void => {
    for (const listener of listeners) listener.closed();
  };
  return { request: { onClose } as SessionRequest, close };
}

it('waits for the first response that is closed, and no longer', async () => {
  const [one, other] = [requestThatIs('open'), requestThatIs('open')];
  let isOver = false;
  const over = afterResponse([one.request, other.request], containment)?.then(() => (isOver = true));
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  other.close();
  await new Promise(setImmediate);
  expect(isOver).toBe(true);
  await over;
});

it('waits a moment for a response that stays open, such as a stream', async () => {
  const begun = performance.now();
  await afterResponse([requestThatIs('open').request], containment);
  expect(performance.now() - begun).toBeGreaterThan(15);
});

it('waits for nothing when no response is open', async () => {
  expect(afterResponse([], containment)).toBeUndefined();
  const begun = performance.now();
  await afterResponse([requestThatIs('closed').request], containment);
  expect(performance.now() - begun).toBeLessThan(15);
});
