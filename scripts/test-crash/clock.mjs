// Preloaded into an app process (`--import clock.mjs?offsetMs=…&speed=…&since=…`): its clock is so far off, or runs so
// many times as fast, timers included. The time-outs inside Node itself stay as they are.
import { performance } from 'node:perf_hooks';

const query = new URL(import.meta.url).searchParams;
const offsetMs = Number(query.get('offsetMs') ?? 0);
const speed = Number(query.get('speed') ?? 1);
const since = Number(query.get('since') ?? 0);

const real = { Date, now: Date.now, setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };
const now = () => Math.floor(since + (real.now() - since) * speed + offsetMs);
Date.now = now;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length > 0 ? args : [now()], newTarget),
});

if (speed !== 1) {
  const uptime = performance.now.bind(performance);
  performance.now = () => uptime() * speed;
  const machine = process.hrtime.bigint;
  process.hrtime.bigint = () => BigInt(Math.floor(Number(machine()) * speed));
  for (const name of ['setTimeout', 'setInterval'])
    globalThis[name] = (work, ms, ...args) => real[name](work, (ms ?? 0) / speed, ...args);
}
