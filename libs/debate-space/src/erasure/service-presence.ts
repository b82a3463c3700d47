import { DebateSpaceError, type DebateSpaceErrorCode } from '../errors.js';

const BELIEVED_FOR_MS = 10 * 60_000;
/** Whoever says these may not be the service, or is not there. */
const NO_ANSWER: ReadonlySet<DebateSpaceErrorCode> = new Set([
  'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE',
  'ERR_DEBATE_SPACE_UNAVAILABLE',
  'ERR_DEBATE_SPACE_NETWORK',
  'ERR_DEBATE_SPACE_TIMEOUT',
  'ERR_DEBATE_SPACE_RATE_LIMITED',
  'ERR_DEBATE_SPACE_ABORTED',
]);

/**
 * Whether the service stands at {base_url}: a gateway that says 404 to everything would pass for a service that knows no
 * user. Its user list (service-interface.md, section 4.4) is asked for, at most every ten minutes.
 */
export class ServicePresence {
  readonly #list: () => Promise<unknown>;
  #believedUntil = 0;

  constructor(list: () => Promise<unknown>) {
    this.#list = list;
  }

  /** Never rejects. A list that is refused to this API key is there. */
  async isThere(): Promise<boolean> {
    if (performance.now() < this.#believedUntil) return true;
    try {
      await this.#list();
    } catch (error) {
      if (!(error instanceof DebateSpaceError) || NO_ANSWER.has(error.code)) return false;
    }
    this.#believedUntil = performance.now() + BELIEVED_FOR_MS;
    return true;
  }
}
