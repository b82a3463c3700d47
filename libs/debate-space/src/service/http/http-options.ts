import type { HttpAdapter } from './axios-sender.js';

/** How requests reach the service: time-outs, attempts, the rate limit, the HTTP client. */
export interface DebateSpaceHttpOptions {
  /** For one request, from connecting to the last byte of the answer, in milliseconds. @defaultValue `10_000` */
  timeoutMs?: number | undefined;
  /**
   * For one call with all its attempts and with the wait for its slot of the rate limit, in milliseconds. A call whose
   * slot cannot come in time is refused with a `RateLimitedError` as soon as this is known: at once, or when its turn comes
   * after the calls that wait before it. `users()` and the erasures wait for their slots without a limit. @defaultValue `30_000`
   */
  totalTimeoutMs?: number | undefined;
  /** How many requests one call may make. @defaultValue `4` */
  maxAttempts?: number | undefined;
  /**
   * How many requests may reach {base_url} in any window of `perMs` milliseconds. `false` removes the limit.
   * @defaultValue `{ requests: 100, perMs: 60_000 }`
   */
  rateLimit?: { readonly requests: number; readonly perMs: number } | false | undefined;
  /** Permits `http:` addresses that are not loopback. Keys and tokens then travel readable. @defaultValue `false` */
  allowInsecureHttp?: boolean | undefined;
  /**
   * The axios adapter that sends the requests. `'http'` goes through `node:http`, where nock, msw and agents see the
   * requests; `'fetch'` through the global `fetch`; a function may add an agent, such as one for mutual TLS.
   * @defaultValue ours, on undici's `Pool`, which sends about twice as many requests as axios's own
   * @example adapter: (config) => axios.getAdapter('http')({ ...config, httpsAgent })
   */
  adapter?: HttpAdapter | undefined;
}

/** How the user list is requested. */
export interface DebateSpaceUsersOptions {
  /**
   * How the user list is authorized (section 4.4): `'bearer'`, a Bearer token of scope `public`; `'apiKey'`, the `api_key`
   * query parameter, which ends up in access logs. @defaultValue `'bearer'`
   */
  listAuth?: 'bearer' | 'apiKey' | undefined;
}
