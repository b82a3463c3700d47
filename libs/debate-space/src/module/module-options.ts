import type { DebateSpaceErasureOptions } from '../erasure/erasure-options.js';
import type { DebateSpaceLogoutOptions } from '../logout/logout-options.js';
import type { DebateSpaceHttpOptions, DebateSpaceUsersOptions } from '../service/http/http-options.js';
import type { SessionRecord } from '../session-end/session-end.js';
import type { DebateSpaceSessionOptions } from '../live-sessions/session-options.js';
import type { StorageEngine } from '../storage/engine.js';

/**
 * The options of `DebateSpaceModule.forRoot`. Checked once at boot, all problems in one error.
 * @typeParam Session - the argument of `session.uid`, such as `SessionData` of express-session with what you have added to it
 */
export interface DebateSpaceModuleOptions<Session extends object = SessionRecord> {
  /** The API key of the administration panel, Configuration > General: the `client_id` of section 4.1. */
  apiKey: string;
  /**
   * The secret key that belongs to the API key: the `client_secret` of section 4.1, which also signs the logout token (section 5).
   * A function is called at boot and for each attempt, so that a key can be rotated while the app runs. It should cache.
   */
  secretKey: string | (() => string | Promise<string>);
  /** The last part of the logout route (section 4.5). In a storage, applications with different names share nothing. */
  applicationName: string;
  /**
   * {auth_url}, the host root of the service; `https:`, except on loopback.
   * @defaultValue the environment's `DEBATE_SPACE_AUTH_URL`
   */
  authUrl?: string | undefined;
  /** {base_url}, the base address of the API. @defaultValue `${authUrl}/api/v1` */
  baseUrl?: string | undefined;
  /** How the secret key becomes the signing key: its UTF-8 bytes, or Base64 decoded. @defaultValue `'utf8'` */
  secretKeyEncoding?: 'utf8' | 'base64' | undefined;
  /**
   * Encrypts the uids in the storage (AES-256-GCM) and hashes them (HMAC-SHA-256): at least 16 characters without a comma,
   * from `openssl rand -base64 32`, for example; neither the API key nor the secret key. Of several keys the first one encrypts and
   * hashes; all of them decrypt and find (docs/storage.md#rotating-the-storage-key). `postgresStorage` and
   * `mysqlStorage` require a key. `sqliteStorage` creates a key next to its file, which is always the last one.
   * @defaultValue none
   */
  storageKey?: string | readonly string[] | undefined;
  /** Where the sessions are, how their user is found, and whether sessions that expire are reported. */
  session?: DebateSpaceSessionOptions<Session> | undefined;
  /** How logouts are signed and delivered. */
  logout?: DebateSpaceLogoutOptions | undefined;
  /**
   * Where logouts wait for delivery, and erasures until they are done (docs/storage.md). A crash or a restart
   * empties `memoryStorage()`. @defaultValue `memoryStorage()`
   */
  storage?: StorageEngine | undefined;
  /**
   * Whether this process delivers and erases what waits in the storage. `false` for a process that only stores (a script, the
   * web part of an app whose worker does the rest), with a storage that both share. @defaultValue `true`
   */
  worker?: boolean | undefined;
  /** How users are erased, and how long receipts are kept. */
  erasure?: DebateSpaceErasureOptions | undefined;
  /** How requests reach the service: time-outs, attempts, the rate limit, the HTTP client. */
  http?: DebateSpaceHttpOptions | undefined;
  /** How the user list is requested. */
  users?: DebateSpaceUsersOptions | undefined;
}

/** The interface of a class for `forRootAsync({ useClass })` and `useExisting`. */
export interface DebateSpaceOptionsFactory<Session extends object = SessionRecord> {
  /** Called once, at boot. Its result is checked like the options of `forRoot`. */
  createDebateSpaceOptions(): DebateSpaceModuleOptions<Session> | Promise<DebateSpaceModuleOptions<Session>>;
}
