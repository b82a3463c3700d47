import type { AbstractHttpAdapter } from '@nestjs/core';
import { onExpressRequest, onExpressSessionStore } from './express.js';
import { onFastifySession } from './fastify.js';
import { PlatformListener } from './platform-listener.js';
import type { SessionEndDetector } from './session-end-detector.js';

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
 * Reports the requests of a host's platform to the detector. Never throws.
 * @returns `undefined` on a platform without sessions
 */
export function attachPlatform(
  adapter: AbstractHttpAdapter | undefined,
  detector: SessionEndDetector,
): AttachedPlatform | undefined {
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
