import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import type { Clock } from './clock.js';
import { Host } from './host.js';
import type { AppEvent, AppSettings } from './messages.js';
import { seeded, type Random } from './random.js';
import type { AnyScenario } from './scenario.js';
import type { Semaphore } from './semaphore.js';
import type { Sessions } from './session-store.js';
import type { Columns, Row } from './table.js';

/** The settings of an app, before it is known which program it is. */
export type TrialSettings = Omit<AppSettings, 'program'>;

/** What came of a trial, and what is wrong with it, in plain words. */
interface Judged {
  readonly result: Row;
  readonly violations: string[];
}

/**
 * One scenario, once: a service and app processes on one storage. What they do, and what has to be true afterwards, is
 * told by the classes below it.
 */
export abstract class Trial<
  Scenario extends AnyScenario = AnyScenario,
  Account = unknown,
  Result extends Row = Row,
> {
  /** What is shown of a result. */
  abstract readonly columns: Columns;
  service!: DebateSpaceSimulator;
  hosts: readonly Host[] = [];
  /** How often each event was told. */
  readonly events = new Map<AppEvent['type'], number>();
  kills = 0;
  /** By this machine's clock, in ms; `undefined` before the first kill. */
  lastKillAt: number | undefined;
  readonly notes: string[] = [];
  /** After how long it is given up. */
  protected maxMs = 20 * 60_000;
  /** What broke the rules besides the account. */
  readonly trouble: string[] = [];
  /** For the next start of an app. */
  clock: Clock | undefined;
  readonly random: Random;
  readonly #started = performance.now();
  #fail!: (error: Error) => void;
  readonly #failed = new Promise<never>((_, reject) => {
    this.#fail = reject;
  });

  constructor(
    readonly scenario: Scenario,
    readonly size: Scenario['size'],
    seed: number,
  ) {
    this.random = seeded(seed);
  }

  /** Prepares where the storage is. */
  protected abstract place(): string | Promise<string> | undefined;
  /** An app that has not been started. */
  protected abstract newHost(settings: TrialSettings): Host;
  protected abstract play(inTurn: Semaphore): Promise<void>;
  /** Resolves when nothing more is to come, with what is known then. */
  protected abstract settled(): Promise<Account>;
  protected abstract result(account: Account): Result;
  protected abstract violations(result: Result): string[];
  /** What else an event means. */
  protected hear?(event: AppEvent, host: Host): void;

  /** @param inTurn lets only so many trials load this machine at the same time */
  async run(inTurn: Semaphore): Promise<Judged> {
    const { scenario } = this;
    this.#failed.catch(() => undefined);
    this.service = await DebateSpaceSimulator.start({ rateLimit: false });
    try {
      const place = (await this.place()) ?? '';
      const { apiKey, secretKey, applicationName } = DEMO_CREDENTIALS;
      const keys = { apiKey, secretKey, applicationName, authUrl: this.service.url };
      const options: DebateSpaceModuleOptions = { ...keys, ...scenario.options };
      const { apps = 1, appsWithoutWorker = 0 } = scenario;
      this.hosts = Array.from({ length: apps }, (_, n) =>
        this.newHost({ ...scenario, place, options: { ...options, worker: n >= appsWithoutWorker } }),
      );
      await Promise.race([
        this.#failed,
        sleep(this.maxMs, undefined, { ref: false }).then(() => tooLong(this.maxMs)),
        this.play(inTurn),
      ]);
      const result = this.result(await Promise.race([this.#failed, this.settled()]));
      return { result, violations: this.violations(result) };
    } finally {
      await Promise.all(this.hosts.map((host) => host.end()));
      await this.service.stop();
    }
  }

  /** The only app of most scenarios. */
  get firstHost(): Host {
    const [host] = this.hosts;
    if (!host) throw new Error('no app was started');
    return host;
  }

  noteKill(): void {
    this.kills += 1;
    this.lastKillAt = Date.now();
  }

  /** @returns how many such events there were */
  count(type: AppEvent['type']): number {
    return this.events.get(type) ?? 0;
  }

  /** Resolves with the next event of this type. */
  async heard(type: AppEvent['type'], withinMs: number): Promise<void> {
    const before = this.count(type);
    const end = performance.now() + withinMs;
    while (performance.now() < end) {
      if (this.count(type) > before) return;
      await sleep(50);
    }
    this.trouble.push(`no ${type} within ${withinMs} ms`);
  }

  get seconds(): number {
    return Math.round((performance.now() - this.#started) / 1000);
  }

  /** @param sessions what answers the app's session store, if it has one */
  protected hostOf(settings: AppSettings, sessions?: Sessions): Host {
    const host: Host = new Host(settings, sessions, (event) => {
      this.#hear(event);
      this.hear?.(event, host);
    });
    return host;
  }

  #hear(event: AppEvent): void {
    this.events.set(event.type, this.count(event.type) + 1);
    if (event.type === 'died') this.#fail(new Error(`an app ended unasked (${event.cause})`));
  }
}

function tooLong(ms: number): never {
  throw new Error(`not over within ${ms / 60_000} minutes`);
}
