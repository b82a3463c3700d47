import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in constant time; hashing first hides their lengths as well. */
export function sameSecret(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
