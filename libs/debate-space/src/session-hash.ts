import { createHmac } from 'node:crypto';
import type { Secret } from './secret.js';

/** Tells sessions apart without their ids; whoever lacks the key can neither guess nor test an id against it. */
export function sessionHash(key: Secret, sid: string): string {
  return createHmac('sha256', key.reveal()).update(sid).digest('base64url').slice(0, 22);
}
