import type { ErasureStorage } from '../erasure/queue/erasure-storage.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { FormatRow } from '../storage/format-row.js';
import type { DebateSpaceOutbox, OutboxStats } from './debate-space-outbox.js';

/** `degraded`: users are served, and somebody should look. `down`: logouts do not get through. */
export type HealthState = 'up' | 'degraded' | 'down';

export interface DebateSpaceHealthReport {
  readonly state: HealthState;
  /** Plain sentences for the person on call; empty when all is well. No personal data. */
  readonly problems: readonly string[];
  readonly stats: OutboxStats;
}

export interface DebateSpaceHealthOptions {
  /** When a logout that still waits is a problem, in milliseconds since the session ended. Default: 1 minute. */
  readonly degradedAfterMs?: number;
  /** When it is an alarm, and so is an outbox that could not be read for that long. Default: 15 minutes. */
  readonly downAfterMs?: number;
}

/** As Terminus takes it. */
export type HealthIndicatorResult = Record<string, { status: 'up' | 'down' } & Record<string, unknown>>;

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Whether logouts get through, and no erasure is overdue. The age of the oldest pending one is the alarm: it grows whatever the cause is. Asks
 * neither the service nor any user. Injectable.
 */
export class DebateSpaceHealth {
  readonly #outbox: DebateSpaceOutbox;
  readonly #erasures: ErasureStorage;
  readonly #pause: ServicePause;
  readonly #format: FormatRow;

  constructor(outbox: DebateSpaceOutbox, erasures: ErasureStorage, pause: ServicePause, format: FormatRow) {
    this.#outbox = outbox;
    this.#erasures = erasures;
    this.#pause = pause;
    this.#format = format;
  }

  /** Never rejects. */
  async check({
    degradedAfterMs = 60_000,
    downAfterMs = 15 * 60_000,
  }: DebateSpaceHealthOptions = {}): Promise<DebateSpaceHealthReport> {
    const stats = await this.#outbox.stats();
    const { oldestPendingMs: oldest = 0, unreadableMs = 0, parked, degraded, serviceDown } = stats;
    const problems: string[] = [];
    if (stats.unreadableMs !== undefined) problems.push('the outbox cannot be read');
    if (this.#format.isEmptied)
      problems.push('the storage was emptied; see: docs/operations.md, "The storage was emptied"');
    if (oldest > degradedAfterMs)
      problems.push(`the oldest logout has waited for ${Math.round(oldest / 1000)} s`);
    if (serviceDown) problems.push('the service does not take logouts');
    const { leftMs } = this.#pause;
    if (leftMs > 0)
      problems.push(`the service requested a pause, which ends in ${Math.ceil(leftMs / 1000)} s`);
    if (degraded) problems.push('the outbox does not take logouts; a crash would lose those in memory');
    if (parked > 0) problems.push(`${parked} logouts are parked; see: npx debate-space outbox parked`);
    const oldestErasureMs = await this.#erasures.overdueMs();
    if (oldestErasureMs !== undefined) {
      const days = Math.floor(oldestErasureMs / DAY_MS);
      problems.push(`an erasure is overdue, requested ${days} days ago; see: npx debate-space erasures list`);
    }
    const isDown = Math.max(oldest, unreadableMs) > downAfterMs;
    return { state: isDown ? 'down' : problems.length > 0 ? 'degraded' : 'up', problems, stats };
  }

  /**
   * The same as an indicator for `HealthCheckService` of @nestjs/terminus: only `down` is unhealthy, so that a service
   * that is away does not take your instances out of rotation.
   * @param key its name in the report. Default: `debateSpace`
   */
  async indicator(key = 'debateSpace', options?: DebateSpaceHealthOptions): Promise<HealthIndicatorResult> {
    const { state, problems, stats } = await this.check(options);
    return { [key]: { status: state === 'down' ? 'down' : 'up', state, problems, ...stats } };
  }
}
