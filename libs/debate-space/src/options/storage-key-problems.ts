import type { Secret } from '../secrets/secret.js';

/** The secret key may come from a function: the app asks for it at boot, and looks then. */
export const IS_SECRET_KEY =
  'storageKey has the value of secretKey, and would stop the storage with its rotation; give it its own';

/**
 * What is wrong with these storage keys beside their form, which the schema checks. One sentence each, without a key.
 * @param given the option `storageKey` as it was given
 */
export function storageKeyProblems(given: unknown, apiKey: unknown): readonly string[] {
  const keys = [given].flat();
  return keys.flatMap((key, n) => {
    if (typeof key !== 'string' || key === '') return []; // named by the schema
    const name = Array.isArray(given) ? `storageKey.${n}` : 'storageKey';
    if (key === apiKey)
      return [
        `${name} has the value of apiKey, which is the client_id of the service and stands in every token; give it its own`,
      ];
    const first = keys.indexOf(key);
    return first < n ? [`${name} has the value of storageKey.${first}; leave out one of them`] : [];
  });
}

/** Whether one of the storage keys is this one. */
export function isStorageKey(keys: readonly Secret[], key: Secret): boolean {
  return keys.some((known) => known.reveal() === key.reveal());
}
