import type { LoggerService } from '@nestjs/common';
import type { DebateSpaceEvent } from './debate-space-event.js';

const MOST_REASONS = 100;

/**
 * Turns events into log lines that an operator needs: no personal data, and one line per change, not one per attempt –
 * an outage must not flood the log.
 */
export class EventLog {
  readonly #logger: LoggerService;
  readonly #faults = new Set<string>();
  readonly #parkedFor = new Map<string, number>();

  constructor(logger: LoggerService) {
    this.#logger = logger;
  }

  write(event: DebateSpaceEvent): void {
    switch (event.type) {
      case 'session-store-found':
        this.#logger.log(`session store found: ${event.store}`);
        return;
      case 'logout-parked':
        this.#parked(event.id, `after attempt ${event.attempts} (${event.cause}): ${event.cure}`);
        return;
      case 'service-down':
        this.#logger.warn(`the service does not take logouts (${event.cause}); they wait in the outbox`);
        return;
      case 'service-up':
        this.#logger.log('the service takes logouts again');
        return;
      case 'outbox-degraded':
        this.#logger.error(
          `the outbox does not take logouts (${event.cause}); they are delivered from memory, which a crash would lose`,
        );
        return;
      case 'outbox-recovered':
        this.#logger.log('the outbox takes logouts again');
        return;
      case 'shutdown-incomplete':
        this.#shutdownIncomplete(event.pending, event.lost);
        return;
      case 'fault':
        this.#fault(event.where, event.error);
        return;
      case 'session-ended':
      case 'logout-delivered':
      case 'logout-retrying':
      case 'logouts-superseded':
    }
  }

  /** A wrong secret parks every logout: those for the same reason are told of as the 1st, 10th, 100th … */
  #parked(id: string, why: string): void {
    const count = (this.#parkedFor.get(why) ?? 0) + 1;
    if (this.#parkedFor.size < MOST_REASONS || this.#parkedFor.has(why)) this.#parkedFor.set(why, count);
    if (!/^10*$/.test(String(count))) return;
    this.#logger.error(
      count === 1 ? `logout ${id} is parked ${why}` : `${count} logouts are parked, the last ${id}, ${why}`,
    );
  }

  #shutdownIncomplete(pending: number, lost: boolean): void {
    if (lost) this.#logger.error(`${pending} logouts were not delivered before the shutdown and are lost`);
    else this.#logger.warn(`${pending} logouts wait in the outbox for the next start`);
  }

  /** The same fault at every request is one line. */
  #fault(where: string, error: string): void {
    const fault = `${where} (${error})`;
    if (this.#faults.has(fault)) return;
    if (this.#faults.size < MOST_REASONS) this.#faults.add(fault);
    this.#logger.warn(`something failed and was contained: ${fault}; further ones like it are not logged`);
  }
}
