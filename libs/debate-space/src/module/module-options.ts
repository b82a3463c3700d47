import type { DebateSpaceErasureOptions } from '../erasure/erasure-options.js';
import type { DebateSpaceLogoutOptions } from '../logout/logout-options.js';
import type { DebateSpaceHttpOptions, DebateSpaceUsersOptions } from '../service/http-options.js';
import type { DebateSpaceSessionOptions } from '../session-end/session-options.js';
import type { StorageEngine } from '../storage/storage.js';

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

/** What `forRootAsync({ useClass })` and `useExisting` expect. */
export interface DebateSpaceOptionsFactory {
  createDebateSpaceOptions(): DebateSpaceModuleOptions | Promise<DebateSpaceModuleOptions>;
}
