import type { Abstract, FactoryProvider } from '@nestjs/common';
import { getDebateSpaceToken } from '../api/debate-space.tokens.js';
import { Application } from './application.js';

type Classes<Instances extends readonly unknown[]> = {
  readonly [N in keyof Instances]: Abstract<Instances[N]>;
};
/** @param name of the application */
type NamedProvider = (name: string | undefined) => FactoryProvider;

/**
 * A provider that its constructor makes of other providers. Classes are the tokens, except for what a module exports: it
 * has a token of its name, because `app.get(DebateSpaceService)` must not find that of a named application.
 */
export function construct<T, Parts extends readonly unknown[]>(
  provided: Abstract<T> & (new (...parts: Parts) => T),
  ...parts: Classes<Parts>
): NamedProvider {
  return (name) => ({
    provide: getDebateSpaceToken(name, provided),
    inject: parts.map((part: Abstract<unknown>) => getDebateSpaceToken(name, part)),
    useFactory: (...made: Parts) => new provided(...made),
  });
}

/** A provider that `make` makes of the application and other providers. */
export function provide<T, Parts extends readonly unknown[]>(
  provided: Abstract<T>,
  parts: Classes<Parts>,
  make: (application: Application, ...parts: Parts) => T,
): NamedProvider {
  return (name) => ({
    provide: getDebateSpaceToken(name, provided),
    inject: [Application, ...parts].map((part: Abstract<unknown>) => getDebateSpaceToken(name, part)),
    useFactory: make,
  });
}
