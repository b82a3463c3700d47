import type { HttpAdapter } from './transport.js';

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
   * How the user list is authorized (section 4.4): a Bearer token of scope `public` (`bearer`, default) or the
   * `api_key` query parameter (`apiKey`), which ends up in access logs.
   */
  listAuth?: 'bearer' | 'apiKey' | undefined;
}
