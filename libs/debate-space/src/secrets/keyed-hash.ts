import { createHmac } from 'node:crypto';
import type { Secret } from './secret.js';

/** Keeps the hashes of one thing from being compared with those of another. */
export type Hashed = 'session' | 'uid';

/** Tells values apart without showing them; anyone who lacks the key can neither guess nor test one against it. */
export function keyedHash(key: Secret, of: Hashed, value: string): string {
  return createHmac('sha256', key.reveal()).update(`${of}\0${value}`).digest('base64url').slice(0, 22);
}
