import type { Containment } from '../../async/containment.js';
import type { SessionRequest } from './session-request.js';

/** The requests under way that may log a user in, with a session or without one. */
export class OpenRequests {
  /** Whether those that only read count, too: a login at an identity provider comes back by `GET`. */
  readonly countsAll: boolean;
  readonly #containment: Containment;
  readonly #open = new Set<SessionRequest>();

  constructor(containment: Containment, countsAll: boolean) {
    this.#containment = containment;
    this.countsAll = countsAll;
  }

  counts(method: string | undefined): boolean {
    return this.countsAll || (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS');
  }

  add(request: SessionRequest): void {
    const closed = (): void => void this.#open.delete(request);
    if (request.onClose({ containment: this.#containment, closed })) this.#open.add(request);
  }

  /** Those that can still change whom their browser is logged in as. */
  unanswered(): readonly SessionRequest[] {
    return [...this.#open].filter((request) => !request.isCommitted);
  }
}
