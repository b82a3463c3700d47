import { Injectable } from '@nestjs/common';
import { DebateSpaceEvents } from 'nestjs-debate-space';

/** Why erasures fail at the moment, as this process has met it: their status does not say. */
@Injectable()
export class ErasureTroubles {
  /** While the service erases nobody. */
  #outage: string | undefined;
  /** Of single references, until an attempt succeeds. */
  readonly #causes = new Map<string, string>();

  constructor({ events$ }: DebateSpaceEvents) {
    events$.subscribe((event) => {
      if (event.type === 'erasure-service-down') this.#outage = event.cause;
      else if (event.type === 'erasure-service-up') this.#outage = undefined;
      else if (event.type === 'erasure-retrying') this.#causes.set(event.reference, event.cause);
      else if (event.type === 'erasure-finished' || event.type === 'erasure-done')
        this.#causes.delete(event.reference);
    });
  }

  /** In words. The rate limit is no trouble: the progress says how long it takes. */
  of(reference: string): string | undefined {
    const cause = this.#outage ?? this.#causes.get(reference);
    return cause === undefined || cause === 'no slot of the rate limit' ? undefined : inPlainWords(cause);
  }
}

/** @param cause docs/troubleshooting.md has them all */
function inPlainWords(cause: string): string {
  if (cause === 'beforeErase failed') return 'this app could not check whether the user may be erased';
  const [status] = /\d{3}$/.exec(cause) ?? [];
  return status === undefined
    ? 'the debate space cannot be reached'
    : `the debate space answers with status ${status}`;
}
