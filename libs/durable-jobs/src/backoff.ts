/**
 * Full jitter: a random time between 0 and `firstMs · 2^(failures − 1)`, at most `mostMs`.
 * @param failures how many attempts have failed so far, from 1
 * @param random a number from 0 to 1
 * @returns milliseconds
 */
export function fullJitter(
  failures: number,
  firstMs: number,
  mostMs: number,
  random = Math.random(),
): number {
  return Math.round(random * Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30)));
}
