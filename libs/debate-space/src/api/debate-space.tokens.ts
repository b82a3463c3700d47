import { Inject, type Abstract, type InjectionToken } from '@nestjs/common';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { DebateSpaceErasures } from './debate-space-erasures.js';
import { DebateSpaceEvents } from './debate-space-events.js';
import { DebateSpaceHealth } from './debate-space-health.js';
import { DebateSpaceOutbox } from './debate-space-outbox.js';
import { DebateSpaceService } from './debate-space.service.js';

/**
 * The exports of a DebateSpaceModule. The keys stay the same when a bundler renames the classes.
 * @internal
 */
export const EXPORTED = {
  DebateSpaceService,
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceHealth,
  SessionEndWatcher,
};

/**
 * The injection token of a provider of one application: the class itself for the application without a name, a string
 * for a named one. For `overrideProvider` and `app.get`.
 */
export function getDebateSpaceToken<T>(name: string | undefined, provider: Abstract<T>): InjectionToken<T> {
  const exported = Object.entries(EXPORTED).find(([, each]) => (each as Abstract<unknown>) === provider);
  return name === undefined || !exported ? provider : `${exported[0]}(${name})`;
}

/**
 * Injects a provider of the application of this name: its `DebateSpaceService`, or the class given.
 * @example constructor(@InjectDebateSpace('youth') private readonly youth: DebateSpaceService) {}
 */
export function InjectDebateSpace(
  name: string,
  provider: Abstract<unknown> = DebateSpaceService,
): ParameterDecorator & PropertyDecorator {
  return Inject(getDebateSpaceToken(name, provider));
}
