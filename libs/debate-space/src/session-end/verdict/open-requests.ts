import type { Containment } from '../../async/containment.js';
import type { SessionRequest } from './session-request.js';

/** The requests of an app that are under way, with a session or without one. */
export class OpenRequests {
  readonly #containment: Containment;
  readonly #open = new Set<SessionRequest>();

  constructor(containment: Containment) {
    this.#containment = containment;
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
