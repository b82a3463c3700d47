import { acceptedUid, foundUid, namedUid } from '../uid-rule.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import { invalidArgument } from '../errors.js';
import {
  findOrphans,
  MAX_FIND_PAGES,
  type FindAccounts,
  type OrphanedUser,
  type OrphansOptions,
} from '../service/calls/user-walks.js';
import type { LogoutRoute } from '../service/calls/logout-route.js';
import type { UsersApi } from '../service/calls/users-api.js';
import type { DebateSpaceUser, ListUsersQuery, UserPage } from '../service/calls/listed-users.js';

const USERS_PER_PAGE = 100;

/** Ends a call early; it then rejects with an `AbortedError` that says what is known of its effect. */
export interface CallOptions {
  /** Ends the call when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** How far `findUser` reads the list. */
export interface FindUserOptions extends CallOptions {
  /**
   * How many pages of 100 users are read at most, where the service ignores the filter `uid`. Default: 50. Each page is
   * one request of the rate limit.
   */
  readonly maxPages?: number | undefined;
}

/**
 * The user operations of the service, and logouts without a session. Injectable.
 *
 * @example
 * const user = await debateSpace.findUser('alice');
 * for await (const { uid } of debateSpace.users()) console.log(uid);
 */
export class DebateSpaceService {
  /**
   * {auth_url}/auth/logout/{application_name} (service-interface.md, section 4.5): what a host with OpenID Connect
   * registers at its identity provider.
   */
  readonly backchannelLogoutUrl: string;
  readonly #users: UsersApi;
  readonly #recorder: LogoutRecorder;

  constructor(users: UsersApi, recorder: LogoutRecorder, route: LogoutRoute) {
    this.#users = users;
    this.#recorder = recorder;
    this.backchannelLogoutUrl = route.url;
  }

  /**
   * Erases the user's personal data and keeps the contributions (section 4.2). Irreversible. Resolves when the service
   * has done it; repeating it is safe.
   * @param uid the uid under which the user was registered
   * @throws {InvalidUidError} before anything is sent; {UserNotFoundError}; any other `DebateSpaceRequestError`
   */
  async anonymizeUser(uid: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#users.erase(uid, 'anonymize', signal);
  }

  /**
   * Deletes the user with all contributions (section 4.3). Irreversible: the service refuses this uid forever.
   * Resolves when the service has done it; repeating it is safe.
   * @param uid the uid under which the user was registered
   * @throws {InvalidUidError} before anything is sent; {UserNotFoundError}; any other `DebateSpaceRequestError`
   */
  async deleteUser(uid: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#users.erase(uid, 'delete', signal);
  }

  /**
   * One page of the user list (section 4.4). Further query parameters pass through under the service's own names.
   * @throws {InvalidArgumentError} before anything is sent; any other `DebateSpaceRequestError`
   */
  async listUsers(query: ListUsersQuery = {}, { signal }: CallOptions = {}): Promise<UserPage> {
    return (await this.#users.list(query, signal)).page;
  }

  /**
   * All users, page after page, never more than one page in memory. Breaking out of the loop ends the requests. Waits for its
   * slots of `http.rateLimit`, without end; `signal` ends the wait.
   * @throws {@link UnexpectedResponseError} from the loop, when the walk cannot tell whether it has come to all users
   * @throws {@link RateLimitedError} with `retryAfterMs`, from the loop, when the service requests a pause that is longer
   * than `http.totalTimeoutMs`
   * @throws what `listUsers` throws, from the loop
   */
  users(
    query: Omit<ListUsersQuery, 'page'> = {},
    { signal }: CallOptions = {},
  ): AsyncIterable<DebateSpaceUser> {
    return this.#users.walk(query, signal);
  }

  /**
   * The registered users whose account in the host is gone: deleted before the plugin was there, by hand, or missing from a
   * restored backup. Walks all users once, as {@link DebateSpaceService.users} does, and holds 100 of them at a time.
   * Anonymized users have no uid, and are left out. Changes nothing: give the uids to `DebateSpaceErasures.requestMany`
   * when the walk is over, because erasures during the walk move users to pages that were read already.
   * @param findAccounts gets at most 100 uids at a time, and returns the uids that have an account
   * @throws {@link NoAccountsError} from the loop, before the first user, when none of the first 100 users has an account,
   * unless `allowNoMatch` is `true`
   * @throws {@link InvalidArgumentError} when `findAccounts` is no function; from the loop, when it returns something else
   * than uids that it was given
   * @throws what `findAccounts` and `users` throw, from the loop
   *
   * @example
   * for await (const { uid } of debateSpace.orphans((uids) => accounts.existing(uids))) console.log(uid);
   */
  orphans(findAccounts: FindAccounts, options: OrphansOptions = {}): AsyncIterable<OrphanedUser> {
    if (typeof findAccounts !== 'function')
      throw invalidArgument('orphans', 'findAccounts must be a function');
    const users = this.users({ perPage: USERS_PER_PAGE }, { signal: options.signal });
    return findOrphans(users, findAccounts, options);
  }

  /**
   * The user of this uid, as the service lists it. The interface shows no route for one user: the list is read with
   * the filter `uid`. Of a service that ignores the filter, page after page is read, up to `maxPages`; a service
   * that refuses the filter (422), for the list without it. All pages together take `http.totalTimeoutMs` at most.
   * @returns `undefined` when no user of exactly this uid is listed
   * @throws {@link InvalidUidError} or {@link InvalidArgumentError} before anything is sent
   * @throws {@link PageLimitError} when the user is not on the first `maxPages` pages, and there are more
   * @throws {@link TimeoutError} or {@link RateLimitedError} when `http.totalTimeoutMs` is too short for these pages
   * @throws what `listUsers` throws
   */
  async findUser(
    uid: string,
    { signal, maxPages = MAX_FIND_PAGES }: FindUserOptions = {},
  ): Promise<DebateSpaceUser | undefined> {
    return this.#users.find(acceptedUid(namedUid(uid), 'findUser'), maxPages, signal);
  }

  /**
   * Logs the user out of the service, for hosts without sessions. Resolves when the outbox has it; delivery follows.
   * @param uid the uid, or JSON text of the user as a session keeps it, in which the uid is found
   * @throws {InvalidUidError} before anything is stored; `AbortedError` when the app is shutting down
   */
  async logoutUser(uid: string): Promise<void> {
    await this.#recorder.request(acceptedUid(foundUid(uid) ?? namedUid(uid), 'logoutUser'));
  }
}
