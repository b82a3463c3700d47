import type { AbstractHttpAdapter } from '@nestjs/core';
import { storeName, type SessionEndDetector } from './session-end-detector.js';
import { onExpressRequest, onExpressSessionStore } from './express.js';
import { onFastifySession } from './fastify.js';
import { PlatformListener } from './platform-listener.js';

export interface AttachedPlatform {
  readonly name: string;
  /** Never throws. */
  readonly detach: () => void;
}

/** @returns how to stop */
type Attach = (instance: never, listener: PlatformListener) => () => void;

interface Platform {
  readonly name: string;
  readonly attach: readonly Attach[];
}

const PLATFORMS: Readonly<Record<string, Platform | undefined>> = {
  express: { name: 'Express', attach: [onExpressRequest, onExpressSessionStore] },
  fastify: { name: 'Fastify', attach: [onFastifySession] },
};

/**
 * Has the given stores watched, and the requests of the host's platform reported to the detector. To be called as early
 * as the platform is there: Fastify's hooks are for what is registered after them. Never throws.
 * @returns `undefined` without a platform, or on one without sessions
 */
export function attachPlatform(
  adapter: AbstractHttpAdapter | undefined,
  detector: SessionEndDetector,
): AttachedPlatform | undefined {
  for (const store of detector.givenStores) detector.watch(store);
  const platform = PLATFORMS[adapter?.getType() ?? ''];
  if (!adapter || !platform) return undefined;
  const { containment } = detector;
  const listener = new PlatformListener(detector);
  // One by one: what is attached can be detached, though the next cannot be attached.
  const detachers = platform.attach.flatMap((attach) =>
    containment.run('HTTP adapter', () => [attach(adapter.getInstance<never>(), listener)], []),
  );
  const detach = (): void => {
    for (const each of detachers.splice(0).reverse()) containment.run('HTTP adapter', each);
  };
  return { name: platform.name, detach };
}

/** For the boot log. */
export function describeSessions(
  { cookies, givenStores }: SessionEndDetector,
  platform: AttachedPlatform | undefined,
): string {
  const parts = cookies.names.map((name) => `session cookie: ${name}`);
  if (givenStores.length > 0) parts.push(`session store: ${givenStores.map(storeName).join(', ')}`);
  else if (platform && parts.length === 0)
    parts.push(`session stack: ${platform.name}, the store is taken from the first request that has one`);
  return parts.length > 0 ? parts.join('; ') : 'no session is watched';
}
