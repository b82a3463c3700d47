import type { IncomingHttpHeaders } from 'node:http';
import type { BeforeErase } from '../erasure/erasure.js';
import type { StorageEngine } from '../storage/storage.js';
import type { HttpAdapter } from '../service/transport.js';

/** What `DebateSpaceModule.forRoot` takes. Checked once at boot, all problems in one error. */
export interface DebateSpaceModuleOptions {
  /** The API key of the administration panel, Configuration > General. It is the `client_id` of section 4.1. */
  apiKey: string;
  /**
   * The secret key beside it: the `client_secret` of section 4.1, and what signs the logout token (section 5). A function
   * is asked at boot and again for each attempt, so that a key may be rotated while the app runs; it should cache.
   */
  secretKey: string | (() => string | Promise<string>);
  /** The name of the client application: the last part of the logout route (section 4.5). */
  applicationName: string;
  /** {auth_url}, the host root of the service. Default: the environment's `DEBATE_SPACE_AUTH_URL`. */
  authUrl?: string | undefined;
  /** {base_url}, the base address of the API. Default: `${authUrl}/api/v1`. */
  baseUrl?: string | undefined;
  /** How the secret key becomes the signing key: its UTF-8 bytes (default), or Base64 decoded. */
  secretKeyEncoding?: 'utf8' | 'base64' | undefined;
  /**
   * Encrypts the uids in the storage (AES-256-GCM) and hashes them (HMAC-SHA-256): at least 16 characters without a comma,
   * such as of `openssl rand -base64 32`; neither the API key nor the secret key. Of several keys the first one encrypts and
   * hashes; all of them decrypt and find. To rotate, put the new key in front and keep the old one behind it.
   * `redisStorage` and `postgresStorage` require a key. `lmdbStorage` makes one beside its data, which stays the last one.
   * @defaultValue none
   */
  storageKey?: string | readonly string[] | undefined;
  session?: DebateSpaceSessionOptions | undefined;
  logout?: DebateSpaceLogoutOptions | undefined;
  /**
   * Where logouts wait for delivery, and erasures until they are done. Default: `memoryStorage()`, which a crash or a
   * restart empties.
   */
  storage?: StorageEngine | undefined;
  /**
   * Whether this process delivers what waits in the storage. Default: true. `false` for one that only notes and asks – a
   * script, the web part of an app whose worker does the rest –, with a storage that both share.
   */
  worker?: boolean | undefined;
  erasure?: DebateSpaceErasureOptions | undefined;
  http?: DebateSpaceHttpOptions | undefined;
  users?: DebateSpaceUsersOptions | undefined;
}

/** What a store keeps for one session. */
export type SessionRecord = Readonly<Record<string, unknown>>;

/** The uid under which the session's user was registered in the service; `undefined` for nobody. */
export type SessionUid = (session: SessionRecord, request?: unknown) => string | undefined;

/** The part of an express-session store that is needed; any store of that kind fits. */
export interface SessionStore {
  get(sid: string, callback: (error: unknown, session?: object | null) => void): unknown;
  set(sid: string, session: object, callback?: (error?: unknown) => void): unknown;
  destroy(sid: string, callback?: (error?: unknown) => void): unknown;
}

/** A request as the browser sent it, or as it would send the next one. */
export interface CookieRequest {
  readonly headers: IncomingHttpHeaders;
  /** By name, decoded: those that came with the request, or what `Set-Cookie` has made of them. */
  readonly cookies: Readonly<Record<string, string | undefined>>;
}

type MaybePromise<T> = T | PromiseLike<T>;

/** A session that lives in a cookie. */
export interface SessionCookie {
  /** The cookie's name. Values that are cut into `name.0`, `name.1`, … are put together. */
  name: string;
  /**
   * Finds the user in the cookie's value. Must check its signature, or decrypt it: browsers send what they like. A value
   * that is refused – `undefined`, or an error – is nobody's.
   */
  uid: (value: string, request: CookieRequest) => MaybePromise<string | number | undefined>;
}

export interface DebateSpaceSessionOptions {
  /**
   * Finds the user in a session. Default: the first of `session.passport.user`, `session.passport` (@fastify/passport),
   * `session.user`, `session.userId`, `session.uid` that is a string, a number, or an object with `uid`, `id`, `sub` or `userId`. One that throws
   * names nobody, and a `fault` event tells of it.
   */
  uid?: SessionUid | undefined;
  /** The store or stores to watch, and no others. Default: every store that the app's requests bring along. */
  store?: SessionStore | readonly SessionStore[] | undefined;
  /** Sessions that live in a cookie: cookie-session, iron-session, @fastify/secure-session, a JWT. Default: none. */
  cookies?: readonly SessionCookie[] | undefined;
  /**
   * Which ends of a user's sessions notify. `any` (default): each. `last`: only when the user has no other live session;
   * for sessions in stores. Keeps the live sessions in `storage`, which all instances must share.
   */
  policy?: 'any' | 'last' | undefined;
  /**
   * Whether users whose session ran out count as logged out. `true` looks every minute. Needs `store`, where the sweep
   * looks whether a session is really gone. Keeps the live sessions in `storage`. Default: false.
   */
  expiry?: boolean | { readonly sweepMs: number } | undefined;
  /** How long a response that is still open may delay the verdict on an end, in milliseconds. Default: 500. */
  graceMs?: number | undefined;
}

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
   * `direct` (default): each end of a session is sent to the service. `oidc`: nothing is sent by itself, because the
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

export interface DebateSpaceErasureOptions {
  /** Asked before each erasure; may veto it. Default: none. */
  beforeErase?: BeforeErase | undefined;
  /** How many erasures this process may have under way at the same time. Default: 4. */
  concurrency?: number | undefined;
  /** After how long a reference that is not finished is told of as `erasure-overdue`, in milliseconds. Default: 7 and 21 days. */
  overdueAfterMs?: readonly number[] | undefined;
  /** After how long an erasure that still fails is given up until somebody retries it, in milliseconds. Default: 28 days. */
  giveUpAfterMs?: number | undefined;
  /** For how long the receipts of a finished reference are kept, in milliseconds. Default: three years of 365 days. */
  receiptRetentionMs?: number | undefined;
}

export interface DebateSpaceHttpOptions {
  /** For one request, from connecting to the last byte of the answer, in milliseconds. Default: 10,000. */
  timeoutMs?: number | undefined;
  /**
   * For one call with all its attempts and with the wait for its slot of the rate limit, in milliseconds. Default: 30,000.
   * A call whose slot cannot come in time is refused immediately, with a `RateLimitedError`. Only the requests count for
   * what waits for its slots instead: `users()` and the erasures.
   */
  totalTimeoutMs?: number | undefined;
  /** How many requests one call may make. Default: 4. */
  maxAttempts?: number | undefined;
  /**
   * How many requests may reach {base_url} in any window of `perMs` milliseconds. Default: 100 in 60,000. `false`
   * removes the limit.
   */
  rateLimit?: { readonly requests: number; readonly perMs: number } | false | undefined;
  /** Permits `http:` addresses that are not loopback. Default: false. Keys and tokens then travel readable. */
  allowInsecureHttp?: boolean | undefined;
  /**
   * The axios adapter that sends the requests. Default: ours, on undici's `Pool`, which sends two to three times as many
   * requests as axios's own. `'http'` goes through `node:http`, where nock, msw and agents see the requests; `'fetch'`
   * through the global `fetch`; a function may add an agent, such as one for mutual TLS.
   * @example adapter: (config) => axios.getAdapter('http')({ ...config, httpsAgent })
   */
  adapter?: HttpAdapter | undefined;
}

export interface DebateSpaceUsersOptions {
  /**
   * How the user list is authorised (section 4.4): a Bearer token of scope `public` (`bearer`, default) or the
   * `api_key` query parameter (`apiKey`), which ends up in access logs.
   */
  listAuth?: 'bearer' | 'apiKey' | undefined;
}

/** What `forRootAsync({ useClass })` and `useExisting` expect. */
export interface DebateSpaceOptionsFactory {
  createDebateSpaceOptions(): DebateSpaceModuleOptions | Promise<DebateSpaceModuleOptions>;
}
