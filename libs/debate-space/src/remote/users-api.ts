import { z } from 'zod';
import type { ErasureMode } from '../erasure/erasure.js';
import { UnexpectedResponseError } from '../errors.js';
import type { Secret } from '../secret.js';
import { isWebPage, jsonBody, statusFailure, unexpected, type Attempt } from './attempt.js';
import { findInPages } from './find-user.js';
import type { ServiceCall, ServiceClient } from './service-client.js';
import type { NoSlot, Slot } from './rate-limiter.js';
import type { HttpReply } from './transport.js';
import { uidPathPart } from './uid.js';
import { listedPage, refused, saysNo, type DebateSpaceUser, type ListedPage } from './user-page.js';
import { userQuery, type ListUsersQuery } from './user-query.js';

export interface UsersApiOptions {
  readonly baseUrl: string;
  /** Sent in the query of the user list; absent for a Bearer token of scope `public`. */
  readonly listApiKey?: Secret;
}

type CallLimits = Pick<ServiceCall<unknown>, 'slotWithinMs' | 'totalTimeoutMs' | 'isJob' | 'slot'>;

const ERASURES = {
  anonymize: { operation: 'anonymizeUser', method: 'POST', rest: '/anonymize' },
  delete: { operation: 'deleteUser', method: 'DELETE', rest: '' },
} as const;

/** The user operations of service-interface.md, sections 4.2 to 4.4. */
export class UsersApi {
  readonly #client: ServiceClient;
  readonly #options: UsersApiOptions;

  constructor(client: ServiceClient, options: UsersApiOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** @throws {UserNotFoundError} when the service does not know the user */
  async erase(uid: string, mode: ErasureMode, signal?: AbortSignal): Promise<void> {
    await this.#erase(uid, mode, erased, signal);
  }

  /** Waits for all that {@link eraseIfExists} needs before its request. Rejects with a `DebateSpaceRequestError`. */
  async prepareErasure(mode: ErasureMode, signal: AbortSignal, slotWithinMs: number): Promise<Slot | NoSlot> {
    const { operation } = ERASURES[mode];
    return this.#client.prepare({ operation, scope: 'authentication' }, signal, slotWithinMs);
  }

  /**
   * Erases a user as part of a job.
   * @param limits the slot of its first request, and how long a second one waits for its own
   * @returns the status of the answer; 404 when the service does not know the user (any more)
   */
  async eraseIfExists(
    uid: string,
    mode: ErasureMode,
    limits: Pick<CallLimits, 'slot' | 'slotWithinMs'>,
    signal?: AbortSignal,
  ): Promise<number> {
    const read = (reply: HttpReply): Attempt<number> => {
      const attempt = erased(reply, true);
      return 'failure' in attempt ? attempt : { value: reply.status };
    };
    return this.#erase(uid, mode, read, signal, { ...limits, isJob: true });
  }

  /** @param limits none for a call that somebody waits for */
  async list(asked: ListUsersQuery, signal?: AbortSignal, limits: CallLimits = {}): Promise<ListedPage> {
    return this.#list(asked, limits, signal);
  }

  /**
   * Looks for a user in the list. All of its requests together are one call with one `http.totalTimeoutMs`.
   * @throws {@link PageLimitError} when the list goes on after `maxPages`
   */
  async find(uid: string, maxPages: number, signal?: AbortSignal): Promise<DebateSpaceUser | undefined> {
    const end = performance.now() + this.#client.totalTimeoutMs;
    return findInPages(uid, maxPages, (query) =>
      this.#list(query, { totalTimeoutMs: end - performance.now() }, signal),
    );
  }

  async #list(asked: ListUsersQuery, limits: CallLimits, signal?: AbortSignal): Promise<ListedPage> {
    const { baseUrl, listApiKey } = this.#options;
    const query = userQuery(asked);
    if (listApiKey) query.set('api_key', listApiKey.reveal());
    const { page = 1, perPage } = asked;
    return this.#client.call(
      {
        operation: 'listUsers',
        method: 'GET',
        url: `${baseUrl}/users?${query.toString()}`,
        scope: listApiKey ? undefined : 'public',
        ...limits,
        read: (reply) => listed(reply, { page, perPage }),
      },
      signal,
    );
  }

  #erase<T>(
    uid: string,
    mode: ErasureMode,
    read: (reply: HttpReply, unknownBefore: boolean) => Attempt<T>,
    signal?: AbortSignal,
    limits?: CallLimits,
  ): Promise<T> {
    const { operation, method, rest } = ERASURES[mode];
    const url = `${this.#options.baseUrl}/users/${uidPathPart(uid, operation)}${rest}`;
    return this.#client.call({ operation, method, url, scope: 'authentication', read, ...limits }, signal);
  }
}

const answerBody = z.object({ success: z.boolean().optional() });

/**
 * Reads the answer to an erasure. Its body is not shown in the interface, so an empty one is fine; one that says no,
 * or that is not the service's, is not. A 404 after an attempt of unknown outcome means that the attempt was carried
 * out – unless it is a web page, which may come from somebody else than the service.
 */
function erased(reply: HttpReply, unknownBefore: boolean): Attempt<void> {
  if (reply.status === 404 && unknownBefore && !isWebPage(reply)) return { value: undefined };
  const failure = statusFailure(reply);
  if (failure) return { failure };
  const json = jsonBody(reply);
  if ('failure' in json) return json;
  if (saysNo(json.value)) return refused(reply);
  const isRecord = typeof json.value === 'object' && json.value !== null && !Array.isArray(json.value);
  return !isRecord || answerBody.safeParse(json.value).success
    ? { value: undefined }
    : unexpected(reply, 'has no usable success');
}

function listed(reply: HttpReply, asked: { page: number; perPage?: number }): Attempt<ListedPage> {
  const failure = statusFailure(reply);
  if (!failure) return listedPage(reply, asked);
  if (failure.status !== 404) return { failure };
  const message = 'there is no user list at {base_url}/users (404); check baseUrl';
  return { failure: { ...failure, error: UnexpectedResponseError, message } };
}
