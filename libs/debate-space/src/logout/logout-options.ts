/** The argument of a function for additional claims. */
export interface LogoutClaimsContext {
  /** The user who is logged out. */
  readonly uid: string;
}

/** Additional claims for a token. */
export type LogoutClaims = (
  context: LogoutClaimsContext,
) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;

/** How logouts are signed and delivered. */
export interface DebateSpaceLogoutOptions {
  /**
   * `'direct'`: each end of a session is sent to the service. `'oidc'`: no session is watched and nothing is sent
   * automatically, because the identity provider notifies the service (section 4.5; docs/stateless-logins.md#openid-connect). The options
   * of `session` are then refused at boot, because they would have no effect.
   * @defaultValue `'direct'`
   */
  mode?: 'direct' | 'oidc' | undefined;
  /** JWT algorithm. @defaultValue `'HS256'` */
  algorithm?: 'HS256' | 'HS384' | 'HS512' | undefined;
  /** `iss`. @defaultValue the application name */
  issuer?: string | undefined;
  /** `aud`. @defaultValue the API key */
  audience?: string | readonly string[] | undefined;
  /**
   * Time from `iat` to `exp`, in whole seconds, 1 to 120 (Back-Channel Logout 1.0, section 2.4). @defaultValue `120`
   */
  lifetimeSeconds?: number | undefined;
  /**
   * Additional claims for each token. They cannot replace a claim of the specification, nor bring a `nonce`.
   * @defaultValue none
   */
  claims?: LogoutClaims | undefined;
  /** How many logouts may be under way at the same time. @defaultValue `8` */
  concurrency?: number | undefined;
  /** How long delivery of a logout is tried before it is parked, in milliseconds. @defaultValue `86_400_000` (1 day) */
  giveUpAfterMs?: number | undefined;
  /**
   * How long the answer of a request that has ended a session waits until the storage has the logout, in milliseconds.
   * Then the answer leaves anyway, the logout continues from memory, and a `storage-degraded` event reports it.
   * @defaultValue `250`
   */
  storageTimeoutMs?: number | undefined;
  /**
   * How long the history of a logout is kept, under a keyed hash of the uid, in milliseconds. 0 keeps nothing.
   * @defaultValue `604_800_000` (7 days)
   */
  historyRetentionMs?: number | undefined;
}
