import type { LoggerService } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { DebateSpaceEvent } from '../events.js';

type Line = readonly [level: 'debug' | 'log' | 'warn' | 'error', text: string];
type EventOf<T extends DebateSpaceEvent['type']> = Extract<DebateSpaceEvent, { readonly type: T }>;
type Lines = { readonly [T in DebateSpaceEvent['type']]?: (event: EventOf<T>) => Line | undefined };

/** So many different texts are logged at once; of the others, one in so many milliseconds. */
const MAX_REMEMBERED = 100;
const FURTHER_LINE_EVERY_MS = 60_000;
/** Of the pauses that are shorter than this, one in so many milliseconds is logged: a service may ask for one after another. */
const PAUSE_LINE_EVERY_MS = 5 * 60_000;

/**
 * Turns events into log lines that an operator needs: no personal data, and one line per change, not one per attempt –
 * an outage must not flood the log.
 */
export class EventLog {
  readonly #logged = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  #nextFurtherLineAt = 0;
  /** Those that are parked since the last {@link flush}, by reason. */
  readonly #parkedFor = new Map<string, { more: number; last: string }>();
  #nextPauseLineAt = 0;

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
      this.#parked(`logout ${id}`, `after attempt ${attempts} (${cause}): ${hint}`),
    'service-down': ({ cause }) => [
      'warn',
      `the service does not take logouts (${cause}); they wait in the outbox`,
    ],
    'logout-route-unexpected': ({ address, cause, hint }) => [
      'warn',
      `${address} does not answer as a logout route (${cause}); logouts wait in the outbox; hint: if it lasts, ${hint}`,
    ],
    'service-up': () => ['log', 'the service takes logouts again'],
    'service-pause-requested': ({ status, pauseMs }) => this.#pauseRequested(status, pauseMs),
    'erasure-service-down': ({ cause }) => [
      'warn',
      `the service does not erase users (${cause}); the erasures wait in the storage`,
    ],
    'erasure-service-up': () => ['log', 'the service erases users again'],
    'erasures-in-memory': () => [
      'warn',
      'erasures are kept in memory: a restart or a crash loses those that are not done; give `storage`: sqliteStorage, postgresStorage or mysqlStorage',
    ],
    'erasures-dropped': ({ count }) => [
      'error',
      `${count} erasures were not done before the shutdown and are lost; ask again`,
    ],
    'erasure-retrying': ({ cause }) =>
      this.#once(
        `an erasure failed (${cause}) and is tried again; further ones with this cause are not logged`,
      ),
    'erasure-overdue': ({ reference, waiting, days }) => [
      'error',
      `erasure ${reference} is overdue: ${waiting} not done after ${days} days`,
    ],
    'erasure-parked': ({ reference, cause, hint }) =>
      this.#parked(`erasure of ${reference}`, `(${cause}): ${hint}; then retry it`),
    'erasure-finished': ({ reference, done, notFound, vetoed, canceled }) => [
      'log',
      `erasure ${reference} is finished: ${done} done, ${notFound} not found, ${vetoed} vetoed, ${canceled} canceled`,
    ],
    'storage-degraded': ({ cause }) => [
      'error',
      `the outbox does not take logouts (${cause}); they are delivered from memory, which a crash would lose`,
    ],
    'storage-emptied': ({ place = 'its place' }) => [
      'error',
      `the storage was emptied: the logouts and erasures that waited in ${place} are lost; hint: see "The storage was emptied" in docs/troubleshooting.md, then restart the app`,
    ],
    'storage-recovered': () => ['log', 'the outbox takes logouts again'],
    'shutdown-incomplete': ({ pending, lost }) =>
      lost
        ? ['error', `${pending} logouts were not delivered before the shutdown and are lost`]
        : ['warn', `${pending} logouts wait in the outbox for the next start`],
    'setup-warning': ({ message, hint }) => ['warn', `${message}; hint: ${hint}`],
    fault: ({ where, error, problem }) =>
      this.#once(
        `something failed and was contained: ${where} (${problem ?? error}); further ones like it are not logged`,
      ),
  };

  /** Writes how many were parked beside those that have a line. */
  flush(): void {
    const parked = [...this.#parkedFor];
    this.#parkedFor.clear();
    for (const [why, { more, last }] of parked)
      if (more > 0) this.#logger.error(`${more} more parked, the last: ${last} ${why}`);
  }

  /** A wrong secret parks every logout: of those for the same reason, the first is logged, the others with `flush`. */
  #parked(which: string, why: string): Line | undefined {
    const { more } = this.#parkedFor.get(why) ?? { more: -1 };
    this.#parkedFor.set(why, { more: more + 1, last: which });
    return more < 0 ? ['error', `${which} is parked ${why}`] : undefined;
  }

  #pauseRequested(status: number, pauseMs: number): Line | undefined {
    const now = performance.now();
    if (now < this.#nextPauseLineAt && pauseMs < PAUSE_LINE_EVERY_MS) return undefined;
    this.#nextPauseLineAt = now + PAUSE_LINE_EVERY_MS;
    const seconds = Math.ceil(pauseMs / 1000);
    return [
      'warn',
      `the service requested a pause of ${seconds} s (${status}); what can wait goes on after it`,
    ];
  }

  /** The same fault at every request is one line. When there are more than can be remembered, they come slowly. */
  #once(text: string): Line | undefined {
    if (this.#logged.get(text)) return undefined;
    if (this.#logged.size === MAX_REMEMBERED) {
      const now = performance.now();
      if (now < this.#nextFurtherLineAt) return undefined;
      this.#nextFurtherLineAt = now + FURTHER_LINE_EVERY_MS;
    }
    this.#logged.set(text, true);
    return ['warn', text];
  }
}

/** On one line, and without the controls by which a text of somebody else could steer or turn around what a person reads. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '\uFFFD');
}
