const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long', timeZone: 'UTC' });
const NUMBER = new Intl.NumberFormat('en-GB');
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

/** A moment as pages show it, such as "21 Nov 2026, 14:05:09 UTC". */
export function moment(date: Date): string {
  return TIME.format(date);
}

export function count(number: number): string {
  return NUMBER.format(number);
}

/** Such as "92 users". */
export function userCount(number: number): string {
  return number === 1 ? '1 user' : `${count(number)} users`;
}

/** A span of time in its largest unit, such as "3 minutes". @param ms milliseconds */
export function inWords(ms: number): string {
  const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['second', 1000];
  const whole = Math.max(1, Math.round(ms / size));
  return `${whole} ${unit}${whole === 1 ? '' : 's'}`;
}
