import type { Rules } from './oracle.js';

export const platforms = ['Express', 'Express, rolling', 'Express, passport', 'Fastify'] as const;
export type Platform = (typeof platforms)[number];

export const placeNames = ['memory', 'slow memory', 'redis', 'postgres'] as const;
export type PlaceName = (typeof placeNames)[number];

export interface Configuration extends Rules {
  readonly name: string;
  readonly platform: Platform;
  /** Where the sessions are. */
  readonly store: PlaceName;
}

/** Every combination. */
export const configurations: readonly Configuration[] = platforms.flatMap((platform) =>
  placeNames.flatMap((store) =>
    [false, true].flatMap((expiry) =>
      ([1, 2] as const).map((instances) => {
        const apps = instances === 1 ? '1 app' : '2 apps';
        const name = [platform, store, ...(expiry ? ['expiry'] : []), apps].join('; ');
        const isRolling = platform === 'Express, rolling' || platform === 'Fastify';
        return { name, platform, store, expiry, instances, isRolling };
      }),
    ),
  ),
);
