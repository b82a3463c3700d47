import { InvalidArgumentError } from '../errors.js';

type FilterValue = string | number | boolean;

/** Further query parameters of the user list, by the service's own names (`sort`, `created_at.gte`, …). */
export type UserFilters = Readonly<Record<string, FilterValue | readonly FilterValue[] | undefined>>;

/** Which page of the user list (service-interface.md, section 4.4), and any further query parameter. */
export type ListUsersQuery = UserFilters & {
  /** From 1. Default: 1. */
  readonly page?: number;
  /** Users per page; documented services accept 1 to 100. Default: the service's. */
  readonly perPage?: number;
};

const OURS: Readonly<Record<string, string>> = {
  per_page: 'use perPage',
  api_key: "use the option users.listAuth: 'apiKey'",
  access_token: 'the token goes into a header, by itself',
};

/**
 * The query of the user list. An array gives a parameter several times; `undefined` leaves it out.
 * @throws {InvalidArgumentError}
 */
export function userQuery({ page = 1, perPage, ...filters }: ListUsersQuery): URLSearchParams {
  const query = new URLSearchParams({ page: String(atLeastOne('page', page)) });
  if (perPage !== undefined) query.set('per_page', String(atLeastOne('perPage', perPage)));
  for (const [name, value] of Object.entries(filters)) {
    if (Object.hasOwn(OURS, name))
      throw invalid(`the filter ${name} is not for you to set: ${OURS[name] ?? ''}`);
    for (const item of [value].flat()) {
      if (item === undefined) continue;
      if (!['string', 'number', 'boolean'].includes(typeof item)) {
        throw invalid(`the filter ${name} must be a string, a number, a boolean, or several in an array`);
      }
      query.append(name, String(item));
    }
  }
  return query;
}

function atLeastOne(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw invalid(`${name} must be a whole number from 1`);
}

function invalid(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(problem, {
    operation: 'listUsers',
    retryable: false,
    outcome: 'not-sent',
    attempts: 0,
  });
}
