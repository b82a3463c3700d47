import { Inject, type Abstract, type InjectionToken } from '@nestjs/common';
import { DebateSpaceService } from './debate-space.service.js';

/**
 * The injection token of a provider of one application: the class itself for the application without a name, a string
 * for a named one. For `overrideProvider` and `app.get`.
 */
export function getDebateSpaceToken<T>(name: string | undefined, provider: Abstract<T>): InjectionToken<T> {
  return name === undefined ? provider : `${provider.name}(${name})`;
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
