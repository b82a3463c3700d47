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

  /** The cause, such as `503` or `ECONNREFUSED`. */
  of(reference: string): string | undefined {
    return this.#outage ?? this.#causes.get(reference);
  }
}
