import {
  ListUsersQuery,
  DebateSpaceUser,
  ListedPage,
  userQuery,
  listedPage,
  maxPageBytes,
} from './listed-users.js';
import { acceptedUid, namedUid } from '../../uid-rule.js';
import type { ErasureMode } from '../../events.js';
import { UserNotFoundError } from '../../errors.js';
import type { Secret } from '../../secrets/secret.js';
import { contradictionOf } from '../http/body.js';
import type { HttpReply } from '../http/exchange.js';
import { assertSuccess, NOT_FOUND, unexpected } from '../http/status-table.js';
import { findInPages, iterateUsers } from './user-walks.js';
import type { NoSlot } from '../rate-limiter.js';
import type { Priority } from '../http/retry.js';
import type { ServiceClient } from './service-client.js';

const ERASURES = {
  anonymize: { operation: 'anonymizeUser', method: 'POST', rest: '/anonymize' },
  delete: { operation: 'deleteUser', method: 'DELETE', rest: '' },
} as const;

export interface ListOptions {
  /** @defaultValue `call` */
  readonly priority?: Priority;
  /** @defaultValue `http.totalTimeoutMs` */
  readonly totalTimeoutMs?: number;
  /** Whether the page before may have been the last one. @defaultValue `false` */
  readonly mayBeBehind?: boolean | undefined;
}

/** The user operations of service-interface.md, sections 4.2 to 4.4. */
export class UsersApi {
  /** @param listApiKey sent in the query of the user list; absent for a Bearer token of scope `public` */
  constructor(
    private readonly client: ServiceClient,
    private readonly baseUrl: string,
    private readonly listApiKey?: Secret,
  ) {}

  /**
   * @param isJob whether a job calls it, after {@link prepareErasure}; a user who is not found is then no error
   * @returns the status of the answer; one of {@link NOT_FOUND} when a job does not find the user
   * @throws {@link UserNotFoundError} when a call does not find the user
   */
  async erase(uid: string, mode: ErasureMode, signal?: AbortSignal, isJob = false): Promise<number> {
    const { operation, method, rest } = ERASURES[mode];
    const part = encodeURIComponent(acceptedUid(namedUid(uid), operation));
    const call = {
      operation,
      method,
      url: `${this.baseUrl}/users/${part}${rest}`,
      scope: 'authentication',
      priority: isJob ? 'job' : 'call',
      hasSlot: isJob,
      read: (reply: HttpReply, unknownBefore: boolean) => erased(reply, unknownBefore || isJob),
    } as const;
    return this.client.call(call, signal);
  }

  /** Waits for the access token and the slot of an erasure by a job. Rejects with a `DebateSpaceRequestError`. */
  prepareErasure(mode: ErasureMode, signal: AbortSignal): Promise<NoSlot | undefined> {
    return this.client.prepareJob(ERASURES[mode].operation, 'authentication', signal);
  }

  async list(
    requested: ListUsersQuery,
    signal?: AbortSignal,
    { priority = 'call', totalTimeoutMs, mayBeBehind }: ListOptions = {},
  ): Promise<ListedPage> {
    const query = userQuery(requested);
    if (this.listApiKey) query.set('api_key', this.listApiKey.reveal());
    const call = {
      operation: 'listUsers',
      method: 'GET',
      url: `${this.baseUrl}/users?${query.toString()}`,
      scope: this.listApiKey ? undefined : 'public',
      priority,
      totalTimeoutMs,
      maxBytes: maxPageBytes(requested.perPage),
      read: (reply: HttpReply) => listedPage(reply, requested, mayBeBehind),
    } as const;
    return this.client.call(call, signal);
  }

  /** All users, page after page. Waits for its slots of the rate limit without a limit of time. */
  walk(query: Omit<ListUsersQuery, 'page'>, signal?: AbortSignal): AsyncIterable<DebateSpaceUser> {
    return iterateUsers((page, mayBeBehind) =>
      this.list({ ...query, page }, signal, { priority: 'walk', mayBeBehind }),
    );
  }

  /**
   * Looks for a user in the list. All of its requests together are one call with one `http.totalTimeoutMs`.
   * @throws {@link PageLimitError} when the list continues after `maxPages`
   */
  async find(uid: string, maxPages: number, signal?: AbortSignal): Promise<DebateSpaceUser | undefined> {
    const end = performance.now() + this.client.totalTimeoutMs;
    return findInPages(uid, maxPages, (query, mayBeBehind) =>
      this.list(query, signal, { totalTimeoutMs: end - performance.now(), mayBeBehind }),
    );
  }
}

const NO_USER = {
  kind: 'refused',
  error: UserNotFoundError,
  text: 'the user is not found',
} as const;
/** The statuses of a completed erasure. A 202 only promises it. */
const DONE: ReadonlySet<number> = new Set([200, 201, 204]);

/**
 * Reads the answer to an erasure. The interface does not show its body, so it counts only if it contradicts the status. A 404
 * or 410 of the service after an attempt of unknown outcome means that this attempt has erased the user.
 */
function erased(reply: HttpReply, unknownBefore: boolean): number {
  const { status } = reply;
  const contradiction = contradictionOf(reply);
  if (NOT_FOUND.has(status) && unknownBefore && contradiction === undefined) return status;
  assertSuccess(reply, { 404: NO_USER, 410: NO_USER }, contradiction);
  if (DONE.has(status)) return status;
  throw unexpected(reply, 'which does not say that the user is erased');
}
