import { withTimeout } from '../async/with-timeout.js';
import type { ErasureProblems, ErasureRepository } from '../erasure/erasure-repository.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { StorageWatch } from '../storage/storage-watch.js';
import type { DebateSpaceOutbox, OutboxStats } from './debate-space-outbox.js';

/** `degraded`: somebody should look, for example because the service is away. `down`: this app does not do its work. */
export type HealthState = 'up' | 'degraded' | 'down';

/** The result of `check()`. */
export interface DebateSpaceHealthReport {
  readonly state: HealthState;
  /** Plain sentences for the person on call; empty when all is well. No personal data. */
  readonly problems: readonly string[];
  readonly stats: OutboxStats;
}

/** From when on a delay counts for the health. */
export interface DebateSpaceHealthOptions {
  /** When a logout that still waits is a problem, in milliseconds since the session ended. Default: 1 minute. */
  readonly degradedAfterMs?: number;
  /**
   * When a storage that does not answer is an alarm, and so are jobs that do not run, in milliseconds. Default: 15 minutes.
   */
  readonly downAfterMs?: number;
}

/** As Terminus takes it. */
export type HealthIndicatorResult = Record<string, { status: 'up' | 'down' } & Record<string, unknown>>;

/** @internal */
export interface HealthParts {
  readonly outbox: Pick<DebateSpaceOutbox, 'stats'>;
  readonly erasures: Pick<ErasureRepository, 'problems' | 'unverified'>;
  readonly pause: Pick<ServicePause, 'leftMs'>;
  readonly watch: Pick<StorageWatch, 'isEmptied' | 'refusal'>;
  /** The lanes of this process. */
  readonly workers: { readonly stalledMs: number };
}

const DAY_MS = 24 * 60 * 60 * 1000;
const STORAGE_TIMEOUT_MS = 5_000;
const NO_PROBLEMS: ErasureProblems = { parked: 0, overdueMs: undefined };

/**
 * Whether this app stores and executes logouts and erasures. Sends no request to the service. Injectable.
 *
 * @example
 * const { state, problems } = await app.get(DebateSpaceHealth).check();
 */
export class DebateSpaceHealth {
  readonly #parts: HealthParts;

  /** @internal */
  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  /** Never rejects, and takes five seconds at most: a storage that has not answered by then counts as unreadable. */
  async check({
    degradedAfterMs = 60_000,
    downAfterMs = 15 * 60_000,
  }: DebateSpaceHealthOptions = {}): Promise<DebateSpaceHealthReport> {
    const { outbox, erasures, pause, watch, workers } = this.#parts;
    const [stats, { parked: parkedErasures, overdueMs } = NO_PROBLEMS] = await Promise.all([
      outbox.stats(),
      withTimeout(erasures.problems(), STORAGE_TIMEOUT_MS, undefined),
    ]);
    const { oldestPendingMs: oldest = 0, unreadableMs, parked, degraded, serviceDown } = stats;
    const { stalledMs } = workers;
    const problems: string[] = [];
    if (watch.refusal !== undefined) problems.push(`the storage cannot be used: ${watch.refusal}`);
    else if (unreadableMs !== undefined) problems.push('the storage cannot be read');
    else if (stalledMs > degradedAfterMs)
      problems.push('the jobs of this process do not run; see the log, then restart the app');
    if (watch.isEmptied)
      problems.push('the storage was emptied; see: docs/troubleshooting.md, "The storage was emptied"');
    if (oldest > degradedAfterMs)
      problems.push(`the oldest logout has waited for ${Math.round(oldest / 1000)} s`);
    if (serviceDown) problems.push('the service does not take logouts');
    if (pause.leftMs > 0)
      problems.push(`the service requested a pause, which ends in ${Math.ceil(pause.leftMs / 1000)} s`);
    if (degraded) problems.push('the storage does not take logouts; a crash would lose those in memory');
    if (parked > 0) problems.push(`${parked} logouts are parked; see: npx debate-space outbox parked`);
    if (parkedErasures > 0)
      problems.push(`${parkedErasures} erasures are parked; see: npx debate-space erasures list`);
    if (overdueMs !== undefined) {
      const days = Math.floor(overdueMs / DAY_MS);
      problems.push(`an erasure is overdue, requested ${days} days ago; see: npx debate-space erasures list`);
    }
    if (erasures.unverified > 0)
      problems.push(`${erasures.unverified} erasures are unverified; see: npx debate-space erasures list`);
    const isDown = Math.max(stalledMs, unreadableMs ?? -Infinity) > downAfterMs;
    return { state: isDown ? 'down' : problems.length > 0 ? 'degraded' : 'up', problems, stats };
  }

  /**
   * The same as an indicator for `HealthCheckService` of @nestjs/terminus: only `down` is unhealthy, so that a service
   * that is away does not take your instances out of rotation.
   * @param key its name in the report. Default: `debateSpace`
   * @throws the `HealthCheckError` of Terminus 10 when `down`; with any other version, nothing
   */
  async indicator(key = 'debateSpace', options?: DebateSpaceHealthOptions): Promise<HealthIndicatorResult> {
    const { state, problems, stats } = await this.check(options);
    const status = state === 'down' ? 'down' : 'up';
    const result = { [key]: { status, state, problems, ...stats } } as const;
    const { HealthCheckError, HealthIndicatorService } = status === 'down' ? await terminus() : {};
    // Terminus 10 takes every result for healthy. 11 has both, and reads the result.
    if (HealthCheckError && !HealthIndicatorService) throw new HealthCheckError(`${key} is down`, result);
    return result;
  }
}

interface Terminus {
  /** Not since Terminus 12. */
  readonly HealthCheckError?: new (message: string, causes: HealthIndicatorResult) => Error;
  /** Since Terminus 11. */
  readonly HealthIndicatorService?: unknown;
}

/** A parameter, because bundlers and minifiers look into constants: whether there is a Terminus is known at run time. */
async function terminus(name = '@nestjs/terminus'): Promise<Terminus> {
  const loaded = import(/* webpackIgnore: true */ name) as Promise<object>;
  return loaded.catch(() => ({}));
}
