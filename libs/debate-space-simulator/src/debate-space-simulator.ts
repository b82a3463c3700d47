import { DemoModeSwitch } from './demo/demo-mode.js';
import { EventStream } from './demo/debate-state.js';
import { Faults } from './faults/faults.js';
import { ReceivedRequests } from './received-requests.js';
import { ServiceClock, SimulatedUsers } from './state/users.js';
import { HttpListener } from './service/http-listener.js';
import { serviceApp } from './service/service-app.js';
import { settingsFrom, type SimulatorOptions, type SimulatorSettings } from './simulator-options.js';
import { AccessTokens } from './operations/obtain-token.js';
import { DebateSessions } from './state/debate-sessions.js';

/**
 * The debate-space service in miniature: a strict HTTP server for tests and demos.
 *
 * ```ts
 * const sim = await DebateSpaceSimulator.start({ users: [{ uid: 'u-1' }] });
 * // point the client at sim.url and sim.baseUrl
 * await sim.stop();
 * ```
 */
export class DebateSpaceSimulator {
  /** The registered users. */
  readonly users: SimulatedUsers;
  /** Who is signed in to the debate. */
  readonly debate: DebateSessions;
  /** What reached the server. */
  readonly received = new ReceivedRequests();
  /** The simulated failures. */
  readonly faults = new Faults();
  readonly applicationName: string;
  readonly #clock: ServiceClock;
  readonly #tokens: AccessTokens;
  readonly #events: EventStream;
  readonly #listener: HttpListener;
  #stopped = false;

  /**
   * Starts a simulator.
   * @throws TypeError for an option that cannot be used; the system's error, such as EADDRINUSE
   */
  static async start(options: SimulatorOptions = {}): Promise<DebateSpaceSimulator> {
    const simulator = new DebateSpaceSimulator(settingsFrom(options));
    await simulator.#listener.open();
    return simulator;
  }

  private constructor(settings: SimulatorSettings) {
    this.applicationName = settings.applicationName;
    this.#clock = new ServiceClock(settings.clockOffsetSeconds);
    this.users = new SimulatedUsers(this.#clock);
    this.debate = new DebateSessions(this.users);
    this.#tokens = new AccessTokens(this.#clock, settings.reissueTokens);
    const demo = new DemoModeSwitch(this.faults);
    this.#events = new EventStream(demo, this.users, this.debate);
    const app = serviceApp(settings, {
      clock: this.#clock,
      demo,
      users: this.users,
      debate: this.debate,
      tokens: this.#tokens,
      events: this.#events,
      faults: this.faults,
      received: this.received,
      baseUrl: () => this.baseUrl,
    });
    this.#listener = new HttpListener(app, settings.host, settings.port, settings.keepProcessAlive);
    for (const user of settings.users) this.users.add(user);
  }

  /** `{auth_url}`, without a trailing slash. */
  get url(): string {
    return this.#listener.origin;
  }

  /** `{base_url}`, without a trailing slash. */
  get baseUrl(): string {
    return `${this.url}/api/v1`;
  }

  /** The service's clock minus this machine's, in seconds. Shows in `Date`, `created_at`, `iat` and `exp`. */
  get clockOffsetSeconds(): number {
    return this.#clock.offsetSeconds;
  }

  set clockOffsetSeconds(seconds: number) {
    this.#clock.offsetSeconds = seconds;
  }

  /** Makes every access token handed out so far unknown: the next request with one is answered 401. */
  revokeTokens(): void {
    this.#tokens.revokeAll();
  }

  /** A real outage: connections are destroyed and new ones refused (ECONNREFUSED). State is kept. */
  async goDown(): Promise<void> {
    await this.#listener.close();
  }

  /** Ends `goDown`: listens on the same port again. @throws Error once stopped */
  async comeBack(): Promise<void> {
    if (this.#stopped) throw new Error('The simulator was stopped for good. Start another one.');
    await this.#listener.open();
  }

  /** Closes everything, open event streams and idle connections included. May be called repeatedly. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#listener.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
