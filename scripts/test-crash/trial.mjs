import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import { Host } from './host.mjs';
import { seeded } from './random.mjs';

const MAX_MS = 20 * 60_000;

/**
 * One scenario, once: a service and app processes on one storage. What they do, and what has to be true afterwards, is
 * told by `play`, `settled`, `result`, `violations` and `columns` of the classes below it.
 */
export class Trial {
  /** How often each event was told. */
  events = new Map();
  kills = 0;
  /** By this machine's clock, in ms; `undefined` before the first kill. */
  lastKillAt;
  notes = [];
  /** What broke the rules besides the account. */
  trouble = [];
  /** For the next start of an app: see `clock.mjs`. */
  clock;
  #started = performance.now();
  #fail;
  #failed = new Promise((_, reject) => (this.#fail = reject));

  constructor(scenario, size, seed) {
    this.scenario = scenario;
    this.size = size;
    this.random = seeded(seed);
  }

  /** @param inTurn lets only so many trials load this machine at the same time */
  async run(inTurn) {
    const { scenario } = this;
    this.#failed.catch(() => undefined);
    this.service = await DebateSpaceSimulator.start({ rateLimit: false });
    try {
      const place = await scenario.place?.(this);
      const { apiKey, secretKey, applicationName } = DEMO_CREDENTIALS;
      const keys = { apiKey, secretKey, applicationName, authUrl: this.service.url };
      const settings = { ...scenario, place, options: { ...keys, ...scenario.options } };
      this.hosts = Array.from({ length: scenario.apps ?? 1 }, () => this.host(settings));
      await Promise.race([
        this.#failed,
        sleep(MAX_MS, undefined, { ref: false }).then(tooLong),
        this.play(inTurn),
      ]);
      return this.result(await Promise.race([this.#failed, this.settled()]));
    } finally {
      await Promise.all((this.hosts ?? []).map((host) => host.end()));
      await this.service.stop();
    }
  }

  noteKill() {
    this.kills += 1;
    this.lastKillAt = Date.now();
  }

  /** @returns how many such events there were */
  count(type) {
    return this.events.get(type) ?? 0;
  }

  /** Resolves with the next event of this type. */
  async heard(type, withinMs) {
    const before = this.count(type);
    for (const end = performance.now() + withinMs; performance.now() < end; await sleep(50))
      if (this.count(type) > before) return;
    this.trouble.push(`no ${type} within ${withinMs} ms`);
  }

  get seconds() {
    return Math.round((performance.now() - this.#started) / 1000);
  }

  /** @param sessions what answers the app's session store, if it has one */
  host(settings, sessions) {
    const host = new Host(settings, sessions, (event) => this.hear(event, host));
    return host;
  }

  hear(event) {
    this.events.set(event.type, this.count(event.type) + 1);
    if (event.type === 'died') this.#fail(new Error(`an app ended unasked (${event.cause})`));
  }
}

function tooLong() {
  throw new Error(`not over within ${MAX_MS / 60_000} minutes`);
}
