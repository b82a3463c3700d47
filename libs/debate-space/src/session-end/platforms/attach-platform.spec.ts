import { expect, it } from '@jest/globals';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { DebateSpaceEvent } from '../../events.js';
import { attachPlatform } from './attach-platform.js';
import { defaultSessionUid } from '../default-session-uid.js';
import { EndRecorder } from '../verdict/end-recorder.js';
import { SessionEndDetector } from './session-end-detector.js';

it('an Express app whose requests cannot be watched for stores has its own methods back when the plugin leaves', () => {
  const events: DebateSpaceEvent[] = [];
  const emit = (event: DebateSpaceEvent): unknown => events.push(event);
  const recorder = new EndRecorder({} as never, emit);
  const detector = new SessionEndDetector(recorder, { uid: defaultSessionUid, graceMs: 10 }, emit);
  const handle = (): void => undefined;
  const app = { handle, request: Object.freeze({}) };
  const adapter = { getType: () => 'express', getInstance: () => app };

  const platform = attachPlatform(adapter as unknown as AbstractHttpAdapter, detector);
  expect(events).toEqual([{ type: 'fault', where: 'HTTP adapter', error: 'TypeError' }]);
  platform?.detach();

  expect(app.handle).toBe(handle);
});
