import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';

/** @param options those of your app, with the new storage */
export const former = (options: DebateSpaceModuleOptions) => ({
  ...options,
  name: 'former',
  storage: sqliteStorage({ path: '/var/lib/my-app/debate-space.db' }),
  session: undefined,
  logout: { ...options.logout, mode: 'oidc' as const },
});
