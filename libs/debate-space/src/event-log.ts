import type { LoggerService } from '@nestjs/common';
import type { DebateSpaceEvent } from './debate-space-event.js';

const MOST_REASONS = 100;
/** Of the pauses that are shorter than this, one in so many milliseconds is logged: a service may ask for one after another. */
const PAUSE_LINE_EVERY_MS = 5 * 60_000;

/**
 * Turns events into log lines that an operator needs: no personal data, and one line per change, not one per attempt –
 * an outage must not flood the log.
 */
export class EventLog {
  readonly #logger: LoggerService;
  readonly #told = new Set<string>();
  readonly #parkedFor = new Map<string, number>();
  #nextPauseLineAt = 0;

  constructor(logger: LoggerService) {
    this.#logger = logger;
  }

  write(event: DebateSpaceEvent): void {
    switch (event.type) {
      case 'session-store-found':
        this.#logger.log(`session store found: ${event.store}`);
        return;
      case 'logout-parked':
        this.#parked('logout', event.id, `after attempt ${event.attempts} (${event.cause}): ${event.hint}`);
        return;
      case 'service-down':
        this.#logger.warn(`the service does not take logouts (${event.cause}); they wait in the outbox`);
        return;
      case 'service-up':
        this.#logger.log('the service takes logouts again');
        return;
      case 'service-pause-requested':
        this.#pauseRequested(event.status, event.pauseMs);
        return;
      case 'erasure-service-down':
        this.#logger.warn(`the service does not erase users (${event.cause}); they wait in the outbox`);
        return;
      case 'erasure-service-up':
        this.#logger.log('the service erases users again');
        return;
      case 'erasures-in-memory':
        this.#logger.warn(
          'erasures are kept in memory: a restart or a crash loses those that are not done; give `storage`: lmdbStorage, redisStorage or postgresStorage',
        );
        return;
      case 'erasures-dropped':
        this.#logger.error(
          `${event.count} erasures were not done before the shutdown and are lost; ask again`,
        );
        return;
      case 'erasure-retrying':
        this.#retrying(event.cause);
        return;
      case 'erasure-overdue':
        this.#logger.error(
          `erasure ${event.reference} is overdue: ${event.waiting} not done after ${event.days} days`,
        );
        return;
      case 'erasure-parked':
        this.#parked('erasure', `of ${event.reference}`, `(${event.cause}): ${event.hint}; then retry it`);
        return;
      case 'erasure-finished':
        this.#logger.log(
          `erasure ${event.reference} is finished: ${event.done} done, ${event.notFound} already gone, ${event.vetoed} vetoed, ${event.cancelled} cancelled`,
        );
        return;
      case 'storage-degraded':
        this.#logger.error(
          `the outbox does not take logouts (${event.cause}); they are delivered from memory, which a crash would lose`,
        );
        return;
      case 'storage-recovered':
        this.#logger.log('the outbox takes logouts again');
        return;
      case 'shutdown-incomplete':
        this.#shutdownIncomplete(event.pending, event.lost);
        return;
      case 'setup-warning':
        this.#logger.warn(`${event.message}; hint: ${event.hint}`);
        return;
      case 'fault':
        this.#fault(event.where, event.error);
        return;
      case 'session-ended':
      case 'logout-delivered':
      case 'logout-retrying':
      case 'logout-superseded':
      case 'erasure-requested':
      case 'erasure-done':
      case 'erasure-vetoed':
      case 'erasure-paused':
      case 'erasure-resumed':
      case 'erasure-cancelled':
    }
  }

  /** A wrong secret parks every logout: those for the same reason are told of as the 1st, 10th, 100th … */
  #parked(kind: 'logout' | 'erasure', which: string, why: string): void {
    const count = (this.#parkedFor.get(why) ?? 0) + 1;
    if (this.#parkedFor.size < MOST_REASONS || this.#parkedFor.has(why)) this.#parkedFor.set(why, count);
    if (!/^10*$/.test(String(count))) return;
    this.#logger.error(
      count === 1
        ? `${kind} ${which} is parked ${why}`
        : `${count} ${kind}s are parked, the last ${which}, ${why}`,
    );
  }

  #pauseRequested(status: number, pauseMs: number): void {
    const now = performance.now();
    if (now < this.#nextPauseLineAt && pauseMs < PAUSE_LINE_EVERY_MS) return;
    this.#nextPauseLineAt = now + PAUSE_LINE_EVERY_MS;
    this.#logger.warn(
      `the service asked for a pause of ${Math.ceil(pauseMs / 1000)} s (${status}); what can wait goes on after it`,
    );
  }

  #retrying(cause: string): void {
    this.#once(
      `erasure ${cause}`,
      `an erasure failed (${cause}) and is tried again; further ones with this cause are not logged`,
    );
  }

  #shutdownIncomplete(pending: number, lost: boolean): void {
    if (lost) this.#logger.error(`${pending} logouts were not delivered before the shutdown and are lost`);
    else this.#logger.warn(`${pending} logouts wait in the outbox for the next start`);
  }

  /** The same fault at every request is one line. */
  #fault(where: string, error: string): void {
    const fault = `${where} (${error})`;
    this.#once(fault, `something failed and was contained: ${fault}; further ones like it are not logged`);
  }

  #once(what: string, line: string): void {
    if (this.#told.has(what)) return;
    if (this.#told.size < MOST_REASONS) this.#told.add(what);
    this.#logger.warn(line);
  }
}
