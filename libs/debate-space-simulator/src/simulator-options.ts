import type { HmacAlgorithm } from './logout-token.js';
import type { NewUser } from './state/users.js';

/** At most `requests` in any span of `perMs` milliseconds. */
export interface RateLimit {
  requests: number;
  perMs: number;
}

/** Options of `DebateSpaceSimulator.start`. Every one may be left out. */
export interface SimulatorOptions {
  /** Port to listen on. Default 0: the system chooses a free one. */
  port?: number;
  /** Address to listen on. Default `127.0.0.1`. */
  host?: string;
  /** Further names under which clients reach it, such as that of a container. Default: none. All others are refused. */
  hostNames?: readonly string[];
  /** The API key (section 1), which is also the `client_id` of section 4.1. Default: the demo one. */
  apiKey?: string;
  /** The secret key (section 1): `client_secret` of section 4.1 and key of section 5. Default: the demo one. */
  secretKey?: string;
  /** `{application_name}` of section 4.5. Default `demo`. */
  applicationName?: string;
  /** How the JWT key is derived from the secret key. Default `utf8`: its bytes as they stand. */
  secretKeyEncoding?: 'utf8' | 'base64';
  /** Signing algorithms accepted for logout tokens. Default HS256, HS384 and HS512. */
  algorithms?: readonly HmacAlgorithm[];
  /** Users registered from the start. Default none. */
  users?: readonly NewUser[];
  /** Limit per API key for the routes under `{base_url}`. Default 100 a minute; `false` for none. */
  rateLimit?: RateLimit | false;
  /** The service's clock minus this machine's, in seconds. Default 0. */
  clockOffsetSeconds?: number;
  /**
   * Hand out a living access token again, with its old `created_at` and the remaining `expires_in`.
   * Default false: a new token for every request.
   */
  reissueTokens?: boolean;
  /** Send the paging headers of the user list. Default true. */
  pagingHeaders?: boolean;
  /**
   * Whether a simulator that is not stopped keeps the process alive. Default false: a test that forgets `stop()` does not
   * keep the test runner open. Set it in a program that only serves requests of other processes.
   */
  keepProcessAlive?: boolean;
}

/** The options with every default filled in. Holds the secret key, so it never sits in a public field. */
export type SimulatorSettings = Readonly<Required<SimulatorOptions>>;

/** What a simulator started without credentials answers to. Published, hence for demos and tests only. */
export const DEMO_CREDENTIALS = Object.freeze({
  apiKey: 'demo-api-key',
  secretKey: 'demo-secret-key-that-protects-nothing-at-all',
  applicationName: 'demo',
});

const DEFAULTS: SimulatorSettings = {
  ...DEMO_CREDENTIALS,
  port: 0,
  host: '127.0.0.1',
  hostNames: [],
  secretKeyEncoding: 'utf8',
  algorithms: ['HS256', 'HS384', 'HS512'],
  users: [],
  rateLimit: { requests: 100, perMs: 60_000 },
  clockOffsetSeconds: 0,
  reissueTokens: false,
  pagingHeaders: true,
  keepProcessAlive: false,
};

/** @throws TypeError naming the option that cannot be used; never its value. */
export function settingsFrom(options: SimulatorOptions): SimulatorSettings {
  // By name, because the configuration of many apps is a class with getters.
  const values = Object.entries(DEFAULTS).map(([name, value]): [string, unknown] => [
    name,
    Reflect.get(options, name) ?? value,
  ]);
  const settings = Object.fromEntries(values) as SimulatorSettings;
  for (const name of ['apiKey', 'secretKey', 'applicationName'] as const) {
    if (settings[name] === '') throw new TypeError(`Option "${name}" must not be empty.`);
  }
  if (settings.secretKeyEncoding === 'base64' && !/^[A-Za-z0-9+/]+={0,2}$/.test(settings.secretKey)) {
    throw new TypeError('Option "secretKey" is not Base64 although "secretKeyEncoding" says so.');
  }
  return settings;
}
