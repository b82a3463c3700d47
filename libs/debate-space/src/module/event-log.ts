import type { LoggerService } from '@nestjs/common';
import type { DebateSpaceEvent } from '../events.js';

type Line = readonly [level: 'debug' | 'log' | 'warn' | 'error', text: string];
type EventOf<T extends DebateSpaceEvent['type']> = Extract<DebateSpaceEvent, { readonly type: T }>;
type Lines = { readonly [T in DebateSpaceEvent['type']]?: (event: EventOf<T>) => Line | undefined };

/** In each period, a repeated line is logged once, and at most `MAX_LINES` different ones are. */
const PERIOD_MS = 10 * 60_000;
const MAX_LINES = 100;

/**
 * Logs the events that an operator needs to see: without personal data, and one line per change instead of one per attempt, so
 * that an outage does not flood the log.
 */
export class EventLog {
  /** The lines of this period that are not repeated. */
  readonly #logged = new Set<string>();
  #periodEndsAt = 0;
  readonly #logger: Readonly<Record<Line[0], (text: string) => void>>;

  constructor(logger: LoggerService) {
    this.#logger = {
      debug: (text) => void logger.debug?.(printable(text)),
      log: (text) => void logger.log(printable(text)),
      warn: (text) => void logger.warn(printable(text)),
      error: (text) => void logger.error(printable(text)),
    };
  }

  write(event: DebateSpaceEvent): void {
    const line = (this.#lines[event.type] as ((event: DebateSpaceEvent) => Line | undefined) | undefined)?.(
      event,
    );
    if (line) this.#logger[line[0]](line[1]);
  }

  /** Events without an entry are not logged. */
  readonly #lines: Lines = {
    'session-store-found': ({ store }) => ['log', `session store found: ${store}`],
    'logout-delivered': ({ id, attempts }) => ['debug', `logout ${id} is delivered by attempt ${attempts}`],
    'logout-parked': ({ id, attempts, cause, hint }) =>
      // A wrong secret parks every logout.
      this.#once(
        'error',
        `logout ${id} is parked after attempt ${attempts} (${cause}): ${hint}; to retry: npx debate-space outbox retry ${id}; more with this cause are not logged for 10 minutes`,
        `logout parked (${cause})`,
      ),
    'service-down': ({ cause }) => ['warn', `the service does not take logouts (${cause}); they wait`],
    'logout-route-unexpected': ({ address, cause, hint }) => [
      'warn',
      `${address} does not answer as a logout route (${cause}); logouts wait; hint: if it lasts, ${hint}`,
    ],
    'service-up': () => ['log', 'the service takes logouts again'],
    'service-pause-requested': ({ status, pauseMs }) =>
      this.#once(
        'warn',
        `the service requested a pause of ${Math.ceil(pauseMs / 1000)} s (${status}); requests that can wait are sent after it`,
        `pause (${status})`,
      ),
    'erasure-service-down': ({ cause }) => [
      'warn',
      `the service does not erase users (${cause}); the erasures wait in the storage`,
    ],
    'erasure-service-up': () => ['log', 'the service erases users again'],
    'erasures-in-memory': () => [
      'warn',
      'erasures are kept in memory, and a restart or a crash loses them; hint: give `storage`: sqliteStorage, postgresStorage or mysqlStorage',
    ],
    'erasures-dropped': ({ count }) => [
      'error',
      `${count} users were not erased before the shutdown, and their erasures are lost; request them again`,
    ],
    'erasure-retrying': ({ cause }) =>
      this.#once(
        'warn',
        `an erasure failed (${cause}) and is tried again; more failures with this cause are not logged for 10 minutes`,
      ),
    'erasure-overdue': ({ reference, waiting, days }) => [
      'error',
      `erasure ${reference} is overdue: ${waiting} users are not erased after ${days} days`,
    ],
    'erasure-parked': ({ reference, cause, hint }) =>
      this.#once(
        'error',
        `erasure of ${reference} is parked (${cause}): ${hint}; then retry it`,
        `erasure parked (${cause})`,
      ),
    'erasure-finished': ({ reference, done, notFound, vetoed, canceled }) => [
      'log',
      `erasure ${reference} is finished: ${done} done, ${notFound} not found, ${vetoed} vetoed, ${canceled} canceled`,
    ],
    'storage-degraded': ({ cause }) => [
      'error',
      `the storage does not take logouts (${cause}); they are delivered from memory, which a crash would lose, and requests for erasures fail`,
    ],
    'storage-refused': ({ problem, hint }) =>
      this.#once(
        'error',
        `the storage answers now, and cannot be used: ${problem}; logouts stay in memory; hint: ${hint}`,
      ),
    'storage-emptied': ({ place = 'its place' }) => [
      'error',
      `the storage was emptied: the logouts and erasures that waited in ${place} are lost; hint: see "The storage was emptied" in docs/troubleshooting.md, then restart the app`,
    ],
    'record-unverified': ({ record, reference }) =>
      this.#once(
        'error',
        `no storageKey vouches for a ${record}${reference === undefined ? '' : ` of erasure ${reference}`}: it was written with ` +
          'another storageKey, or somebody changed it in the database; nothing is done for it; hint: see "Records that ' +
          'nobody vouches for" in docs/troubleshooting.md',
      ),
    'storage-recovered': () => ['log', 'the storage takes logouts again'],
    'shutdown-incomplete': ({ pending, lost }) =>
      lost > 0
        ? ['error', `${lost} of ${pending} logouts that were not delivered before the shutdown are lost`]
        : ['warn', `${pending} logouts wait in the storage for the next start`],
    'setup-warning': ({ message, hint }) => ['warn', `${message}; hint: ${hint}`],
    fault: ({ where, error, problem }) =>
      this.#once(
        'warn',
        `a failure was contained: ${where} (${problem ?? error}); the same failure is not logged again for 10 minutes`,
      ),
  };

  /** @param key equal for lines that count as repeated */
  #once(level: Line[0], text: string, key = text): Line | undefined {
    const now = performance.now();
    if (now >= this.#periodEndsAt) {
      this.#logged.clear();
      this.#periodEndsAt = now + PERIOD_MS;
    }
    if (this.#logged.has(key) || this.#logged.size === MAX_LINES) return undefined;
    this.#logged.add(key);
    return [level, text];
  }
}

/** Replaces line breaks and other controls, by which a text from outside could forge lines or reverse what is shown. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}
