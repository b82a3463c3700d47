import type { EndReason } from 'nestjs-debate-space';

/** Why a user is logged out, for people. */
export const reasonText: Readonly<Record<EndReason, string>> = {
  destroyed: 'session ended',
  'user-removed': 'user removed from the session',
  'user-replaced': 'another user took over the session',
  cleared: 'all sessions cleared',
  abandoned: 'session left by the browser',
  expired: 'session expired',
  explicit: 'ended by the app',
  requested: 'requested',
  erasure: 'before an erasure',
};
