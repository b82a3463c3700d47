/** What a function for additional claims is told. */
export interface LogoutClaimsContext {
  readonly uid: string;
}

/** Additional claims for a token. */
export type LogoutClaims = (
  context: LogoutClaimsContext,
) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;

export interface DebateSpaceLogoutOptions {
  /**
   * `direct` (default): each end of a session is sent to the service. `oidc`: nothing is sent automatically, because the
   * identity provider notifies the service (section 4.5).
   */
  mode?: 'direct' | 'oidc' | undefined;
  /** JWT algorithm. Default: `HS256`. */
  algorithm?: 'HS256' | 'HS384' | 'HS512' | undefined;
  /** `iss`. Default: the application name. */
  issuer?: string | undefined;
  /** `aud`. Default: the API key. */
  audience?: string | readonly string[] | undefined;
  /** Time from `iat` to `exp`, in whole seconds, 1 to 120 (Back-Channel Logout 1.0, section 2.4). Default: 120. */
  lifetimeSeconds?: number | undefined;
  /** Additional claims for each token. They cannot replace a claim of the specification, nor bring a `nonce`. */
  claims?: LogoutClaims | undefined;
  /** How many logouts may be under way at the same time. Default: 8. */
  concurrency?: number | undefined;
  /** How long delivery of a logout is tried before it is parked, in milliseconds. Default: 24 hours. */
  giveUpAfterMs?: number | undefined;
  /**
   * What happens to a logout that still waits when the user logs in again. `deliver` (default): it is sent, and may close
   * the newer debate session – the safe side. `drop`: it is not; a debate session that the user left open elsewhere then
   * stays open.
   */
  onRelogin?: 'deliver' | 'drop' | undefined;
  /**
   * How long a logout of the host may wait until the outbox has noted it, in milliseconds. Default: 250. Then the session
   * ends anyway, the logout goes on from memory, and `storage-degraded` says so.
   */
  storageTimeoutMs?: number | undefined;
  /**
   * How long it is kept what became of a logout, under a keyed hash of the uid, in milliseconds. Default: 7 days. 0
   * keeps nothing.
   */
  historyRetentionMs?: number | undefined;
}
