import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';

/** @param options those of your app, with the new storage */
export const former = (options: DebateSpaceModuleOptions) => ({
  ...options,
  name: 'former',
  storage: lmdbStorage({ path: '/var/lib/my-app/debate-space' }),
  session: undefined,
  logout: { ...options.logout, mode: 'oidc' as const },
});
