import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import { Host } from './host.mjs';
import { Ledger } from './ledger.mjs';
import { Load } from './load.mjs';
import { seeded } from './random.mjs';
import { Sessions } from './session-store.mjs';
import { settled } from './settled.mjs';

const MOST_MS = 20 * 60_000;

/** One scenario, once: a service, app processes on one outbox, browsers, and the account of who was promised what. */
export class Trial {
  ledger = new Ledger();
  /** How often each event was told. */
  events = new Map();
  kills = 0;
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
      const sessions = new Sessions();
      const tell = (event) => this.#heard(event);
      this.hosts = Array.from({ length: scenario.apps ?? 1 }, () => new Host(settings, sessions, tell));
      await Promise.race([this.#failed, sleep(MOST_MS, undefined, { ref: false }).then(tooLong), this.#play(inTurn)]); // prettier-ignore
      return this.#result(await Promise.race([this.#failed, settled(this)]));
    } finally {
      await Promise.all((this.hosts ?? []).map((host) => host.end()));
      await this.service.stop();
    }
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

  async #play(inTurn) {
    await inTurn(async () => {
      await Promise.all(this.hosts.map((host) => host.start(this.clock)));
      const load = new Load(this.hosts, this.ledger, this.random, this.scenario.pauseMs);
      load.start();
      await this.scenario.disturb?.(this);
      await this.ledger.reaches(this.size.endings);
      await load.stop();
    });
    await this.scenario.afterwards?.(this);
  }

  #heard(event) {
    this.events.set(event.type, this.count(event.type) + 1);
    if (event.type === 'died') this.#fail(new Error(`an app ended by itself (${event.cause})`));
  }

  /** What was promised, against what has arrived by now. */
  compare() {
    return this.ledger.compare(this.service.received.logouts);
  }

  #result({ waiting, parked, lost }) {
    const { delivered, duplicates, invented } = this.compare();
    const { asked, acknowledged, refused, slowestMs } = this.ledger;
    return {
      scenario: this.scenario.name,
      kills: this.kills,
      asked,
      acknowledged,
      delivered,
      duplicates,
      invented: invented.length,
      waiting: waiting.length,
      parked: parked.length,
      lost: lost.length,
      refused,
      slowestMs: Math.round(slowestMs),
      degraded: this.count('outbox-degraded'),
      seconds: Math.round((performance.now() - this.#started) / 1000),
      lostUids: lost,
    };
  }
}

function tooLong() {
  throw new Error(`not over within ${MOST_MS / 60_000} minutes`);
}
