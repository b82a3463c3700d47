import { Inject, type Abstract, type InjectionToken } from '@nestjs/common';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import { DebateSpaceErasures } from './debate-space-erasures.js';
import { DebateSpaceEvents } from './debate-space-events.js';
import { DebateSpaceHealth } from './debate-space-health.js';
import { DebateSpaceOutbox } from './debate-space-outbox.js';
import { DebateSpaceService } from './debate-space.service.js';

/** What a DebateSpaceModule exports. Tokens have these names even where a bundler has renamed the classes. */
const NAMES = new Map<Abstract<unknown>, string>([
  [DebateSpaceService, 'DebateSpaceService'],
  [DebateSpaceErasures, 'DebateSpaceErasures'],
  [DebateSpaceEvents, 'DebateSpaceEvents'],
  [DebateSpaceOutbox, 'DebateSpaceOutbox'],
  [DebateSpaceHealth, 'DebateSpaceHealth'],
  [EndRecorder, 'EndRecorder'],
]);

/** @internal */
export const INJECTABLES: readonly Abstract<unknown>[] = [...NAMES.keys()];

/**
 * The injection token of a provider of one application: the class itself for the application without a name, a string
 * for a named one. For `overrideProvider` and `app.get`.
 */
export function getDebateSpaceToken<T>(name: string | undefined, provider: Abstract<T>): InjectionToken<T> {
  return name === undefined ? provider : `${NAMES.get(provider) ?? provider.name}(${name})`;
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
