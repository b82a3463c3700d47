import { DebateSpaceError, type DebateSpaceErrorCode } from '../errors.js';
import { iterateUsers } from '../service/calls/user-walks.js';
import type { NoSlot } from '../service/rate-limiter.js';
import type { UsersApi } from '../service/calls/users-api.js';
import type { DebateSpaceUser } from '../service/calls/listed-users.js';
import type { ErasureMode } from '../events.js';

const PER_PAGE = 100;
const BELIEVED_FOR_MS = 10 * 60_000;
/** Only the service says these. */
const ANSWERS: ReadonlySet<DebateSpaceErrorCode> = new Set([
  'ERR_DEBATE_SPACE_AUTHENTICATION',
  'ERR_DEBATE_SPACE_PERMISSION',
  'ERR_DEBATE_SPACE_REFUSED',
]);

/** What erasures ask the service. */
export class ErasureCalls {
  #believedUntil = 0;

  /** @param shutdownSignal aborted when the app shuts down */
  constructor(
    private readonly users: UsersApi,
    private readonly shutdownSignal: AbortSignal,
  ) {}

  /** Waits for an access token and for a slot of the rate limit. */
  prepare(mode: ErasureMode): Promise<NoSlot | undefined> {
    return this.users.prepareErasure(mode, this.shutdownSignal);
  }

  /** One request. @returns the status of the answer, 404 when the service does not know the user */
  erase(uid: string, mode: ErasureMode): Promise<number> {
    return this.users.erase(uid, mode, this.shutdownSignal, true);
  }

  /**
   * Whether the service stands at {base_url}: a gateway that says 404 to everything would pass for a service that knows no
   * user. Asks for its user list (service-interface.md, section 4.4), at most every ten minutes. Never rejects. A list
   * that is refused to this API key is there.
   */
  async isServiceThere(): Promise<boolean> {
    if (performance.now() < this.#believedUntil) return true;
    try {
      await this.users.list({ perPage: 1 }, this.shutdownSignal, { priority: 'job' });
    } catch (error) {
      if (!(error instanceof DebateSpaceError && ANSWERS.has(error.code))) return false;
    }
    this.#believedUntil = performance.now() + BELIEVED_FOR_MS;
    return true;
  }

  /** All users of the service. Waits for the slots of the rate limit, without end. */
  allUsers(signal?: AbortSignal): AsyncIterable<DebateSpaceUser> {
    return iterateUsers((page, mayBeBehind) =>
      this.users.list({ page, perPage: PER_PAGE }, signal, { priority: 'walk', mayBeBehind }),
    );
  }
}
