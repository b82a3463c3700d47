import { isJsonObject } from '../logout-token/json-object.js';
import { Refusal } from '../service/refusal.js';
import type { NewUser } from '../state/simulated-user.js';

/**
 * The body of the demo sign-in: `{ uid, first_name?, last_name?, email? }`, all strings.
 * @throws Refusal 400
 */
export function signInRequest(body: string): NewUser {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw Refusal.of(400, 'The body is not JSON');
  }
  if (!isJsonObject(value)) throw Refusal.of(400, 'The body is not a JSON object');
  const uid = text(value, 'uid');
  if (uid === undefined || uid === '') throw Refusal.of(400, 'uid is missing');
  return {
    uid,
    first_name: text(value, 'first_name'),
    last_name: text(value, 'last_name'),
    email: text(value, 'email'),
  };
}

function text(object: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = object[name];
  if (value === undefined || typeof value === 'string') return value;
  throw Refusal.of(400, `${name} is not a string`);
}
