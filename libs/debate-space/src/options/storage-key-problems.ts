import type { OptionProblem } from '../errors.js';
import type { Secret } from '../secrets/secret.js';
import { optionProblem } from './option-problem.js';

const OWN = 'give it its own';

/** The secret key may come from a function: the app asks for it at boot, and looks then. */
export const IS_SECRET_KEY = optionProblem(
  'storageKey',
  'has the value of secretKey, and would stop the storage with its rotation',
  OWN,
);

/**
 * What is wrong with these storage keys beside their form, which the schema checks. Never shows a key.
 * @param given the option `storageKey` as it was given
 */
export function storageKeyProblems(given: unknown, apiKey: unknown): readonly OptionProblem[] {
  const keys = [given].flat();
  return keys.flatMap((key, n) => {
    if (typeof key !== 'string' || key === '') return []; // named by the schema
    const option = Array.isArray(given) ? `storageKey.${n}` : 'storageKey';
    const isApiKey =
      'has the value of apiKey, which is the client_id of the service and stands in every token';
    if (key === apiKey) return [optionProblem(option, isApiKey, OWN)];
    const first = keys.indexOf(key);
    if (first === n) return [];
    return [optionProblem(option, `has the value of storageKey.${first}`, 'leave out one of them')];
  });
}

/** Whether one of the storage keys is this one. */
export function isStorageKey(keys: readonly Secret[], key: Secret): boolean {
  return keys.some((known) => known.reveal() === key.reveal());
}
