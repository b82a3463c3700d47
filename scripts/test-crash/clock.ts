// Preloaded into an app process (`--import clock.js?offsetMs=…&speed=…&since=…`): its clock is so far off, or runs so
// many times as fast, timers included. The time-outs inside Node itself stay as they are.
import { performance } from 'node:perf_hooks';

/** How the clock of an app goes: so far off, or so many times as fast since a moment. */
export interface Clock {
  readonly offsetMs?: number;
  readonly speed?: number;
  readonly since?: number;
}

const query = new URL(import.meta.url).searchParams;
const offsetMs = Number(query.get('offsetMs') ?? 0);
const speed = Number(query.get('speed') ?? 1);
const since = Number(query.get('since') ?? 0);

const realNow = Date.now.bind(Date);
const now = (): number => Math.floor(since + (realNow() - since) * speed + offsetMs);
Date.now = now;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length > 0 ? args : [now()], newTarget) as Date,
});

if (speed !== 1) {
  const uptime = performance.now.bind(performance);
  performance.now = () => uptime() * speed;
  const machine = process.hrtime.bigint.bind(process.hrtime);
  process.hrtime.bigint = () => BigInt(Math.floor(Number(machine()) * speed));
  const atSpeed =
    (timer: typeof setTimeout | typeof setInterval) =>
    (work: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
      timer(work, (ms ?? 0) / speed, ...args);
  globalThis.setTimeout = atSpeed(setTimeout) as typeof setTimeout;
  globalThis.setInterval = atSpeed(setInterval) as typeof setInterval;
}
