// Takes the steps of a walk at hosts with the plugin, and holds what it reports against the oracle.
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import { setTimeout as sleep } from 'node:timers/promises';
import { Browser } from '#support/browser/browser.js';
import { startService, using } from '#support/service/service.js';
import { called } from '#support/hosts/session-jobs.js';
import { Steps } from '#support/steps.js';
import type { Configuration } from './configurations.js';
import { Guest, type Turns } from './guest.js';
import { startHost, type WalkHost } from './hand.js';
import { Oracle, SHORT_MS, type Due, type Seen, type View } from './oracle.js';
import type { Place, Places } from './places.js';
import { actsOf, BROWSERS, USERS, type Act, type RequestStep, type Step } from './steps.js';

export interface Finding {
  readonly wrong: 'missed' | 'invented';
  /** The kind of step after which it was seen. */
  readonly kind: string;
  readonly text: string;
}

export interface Walked {
  readonly steps: number;
  /** How many logouts had to be reported. */
  readonly ends: number;
  /** Of the step that was the last one: what comes after a wrong report says nothing. */
  readonly findings: readonly Finding[];
}

interface DestroyingStore {
  destroy(sid: string, callback: (error?: unknown) => void): void;
  clear?(callback: (error?: unknown) => void): void;
}

/** How long a due report may take on a busy machine. */
const REPORT_TIMEOUT_MS = 5_000;
/** What is decided when the response has closed may come a little later than the answer. */
const SETTLE_MS = { memory: 15, 'slow memory': 40, redis: 30, postgres: 40 } as const;
/** Longer than `session.graceMs`: for a report that may be, and for what is decided about a request that was aborted. */
const GRACE_MS = 600;
/** A session counts as live for a third of its maxAge longer, and stores in servers count in seconds. */
const RUN_OUT_MS = { memory: 900, 'slow memory': 900, redis: 1_000, postgres: 1_700 } as const;
/** For what nobody says that it is done: a store that is not awaited, the last save of a request that was aborted. */
const UNANNOUNCED_MS = 100;
const USES = 6;

/** One walk, from an empty store to the stop of the apps. */
export async function walk(
  configuration: Configuration,
  places: Places,
  steps: readonly Step[],
): Promise<Walked> {
  const place = await places.open(configuration);
  const service = await startService();
  try {
    return await new Walk(configuration, place, service).run(steps);
  } finally {
    await service.stop();
  }
}

const turnsOf = (steps: Steps, name: string): Turns => [
  () => steps.next(name),
  () => {
    steps.finish(name);
  },
];

class Walk {
  readonly #oracle: Oracle;
  readonly #hosts: WalkHost[] = [];
  readonly #browsers: Browser[] = [];
  readonly #guests: Guest[] = [];
  /** By uid, what the plugin has reported, and how many of these have been held against the oracle. */
  readonly #reported = new Map<string, number>();
  readonly #compared = new Map<string, number>();
  #view: View = { at: 0, browsers: [], rows: new Map() };
  #ends = 0;

  constructor(
    private readonly configuration: Configuration,
    private readonly place: Place,
    private readonly service: DebateSpaceSimulator,
  ) {
    this.#oracle = new Oracle(configuration);
  }

  async run(steps: readonly Step[]): Promise<Walked> {
    const findings: Finding[] = [];
    let taken = 0;
    try {
      await this.#start();
      for (const step of steps) {
        taken += 1;
        findings.push(...(await this.#take(step)));
        if (findings.length > 0) break;
      }
    } finally {
      for (const host of this.#hosts) await host.stop(); // has every verdict fall, and delivers what there is
    }
    if (findings.length === 0) findings.push(...this.#compare(new Map(), 'stop'), ...this.#undelivered());
    return { steps: taken, ends: this.#ends, findings };
  }

  async #start(): Promise<void> {
    const { platform, expiry, instances } = this.configuration;
    const { stores, storage } = this.place;
    for (const [instance, store] of stores.slice(0, instances).entries()) {
      const given = expiry ? { store: store as never, expiry: { sweepMs: 50 } } : {}; // or else it is found
      const debateSpace = using(this.service, {
        storage,
        storageKey: 'a key that protects nothing',
        logout: { concurrency: 50, storageTimeoutMs: 20_000 }, // a busy machine is no storage that is away
        session: given,
      });
      const desk = {
        sidsOf: async (uid: string | undefined) =>
          [...(await this.place.rows())].flatMap(([sid, user]) => (user === uid ? [sid] : [])),
        destroy: (sids: readonly string[]) => this.#destroy(sids, instance),
      };
      const host = await startHost({
        ...{ platform, store, debateSpace },
        arrived: async (url) => this.#guestOf(url)?.turns?.[0](),
        act: (url, hand) => this.#guestOf(url)?.handle(hand, desk),
      });
      this.#hosts.push(host);
      const events = host.app.get(DebateSpaceEvents).events$;
      events.subscribe((event) => {
        if (event.type === 'session-ended') this.#reported.set(event.uid, this.#reportsOf(event.uid) + 1);
      });
    }
    for (let n = 0; n < BROWSERS; n += 1) this.#browsers.push(new Browser(this.#urlOf(0)));
    for (const [instance] of this.#hosts.entries()) await this.#ask(instance); // each finds its store
    for (const [browser, user] of (['ann', 'ann', 'ben'] as const).entries())
      await this.#visit(this.#guest({ browser, deed: 'logs in', user, target: 0, via: browser }));
    this.#view = await this.#look();
  }

  async #take(step: Step): Promise<Finding[]> {
    const before = this.#view;
    const visits = await this.#do(step);
    const after = (this.#view = await this.#look());
    const due = this.#oracle.due({ kind: step.kind, visits, before, after });
    for (const { must } of due.values()) this.#ends += must;
    const isComplete = (): boolean => [...due].every(([uid, { must }]) => this.#newReportsOf(uid) >= must);
    const until = performance.now() + REPORT_TIMEOUT_MS;
    while (!isComplete() && performance.now() < until) await sleep(5);
    const isPatient = visits.some(({ isGone }) => isGone) || [...due.values()].some(({ may }) => may > 0);
    await sleep(SETTLE_MS[this.configuration.store] + (isPatient ? GRACE_MS : 0));
    return this.#compare(due, step.kind === 'request' ? step.deed : step.kind);
  }

  /** What was reported since the last time, against what is due. */
  #compare(due: ReadonlyMap<string, Due>, kind: string): Finding[] {
    return USERS.flatMap((uid): Finding[] => {
      const reports = this.#newReportsOf(uid);
      this.#compared.set(uid, this.#reportsOf(uid));
      const { must, may } = due.get(uid) ?? { must: 0, may: 0 };
      const text = `after the last step ${uid} was reported ${reports} times; due: ${must}${may > 0 ? ` to ${must + may}` : ''}`;
      if (reports < must) return [{ wrong: 'missed', kind, text }];
      if (this.#oracle.areLate(uid, reports - must - may)) return [];
      // To be told of twice harms nobody: session-endings.md, rule 5.
      return must + may > 0 ? [] : [{ wrong: 'invented', kind, text }];
    });
  }

  #undelivered(): Finding[] {
    return USERS.flatMap((uid): Finding[] => {
      const delivered = this.service.received.logouts.filter((each) => each === uid).length;
      const text = `${uid}: ${this.#reportsOf(uid)} ends, ${delivered} logouts delivered`;
      return delivered < this.#reportsOf(uid) ? [{ wrong: 'missed', kind: 'stop', text }] : [];
    });
  }

  #reportsOf(uid: string): number {
    return this.#reported.get(uid) ?? 0;
  }

  #newReportsOf(uid: string): number {
    return this.#reportsOf(uid) - (this.#compared.get(uid) ?? 0);
  }

  async #look(): Promise<View> {
    const browsers = await this.#ask(this.#guests.length);
    return { at: performance.now(), browsers, rows: await this.place.rows() };
  }

  /** Each browser asks who is logged in, of one instance after another. */
  #ask(turn: number): Promise<Seen[]> {
    return Promise.all(
      this.#browsers.map(async (browser, n) => {
        const [uid, sid = ''] = (await browser.get(`${this.#urlOf(turn + n)}/whoami`)).split(' ');
        return { uid: uid === '' ? undefined : uid, sid };
      }),
    );
  }

  #urlOf(instance: number): string {
    return this.#hosts[instance % this.#hosts.length]?.url ?? '';
  }

  async #do(step: Step): Promise<readonly Guest[]> {
    switch (step.kind) {
      case 'request':
        return [await this.#visit(this.#guest(step, undefined, step.gone))];
      case 'pair': {
        const turns = step.order && new Steps(step.order.map((isOne) => (isOne ? 'one' : 'other')));
        const guests = (['one', 'other'] as const).map((name) =>
          this.#guest(step[name], undefined, false, turns && turnsOf(turns, name)),
        );
        return Promise.all(guests.map((guest) => this.#visit(guest)));
      }
      case 'job':
        await this.#job(step);
        return [];
      case 'run out': {
        const acts: readonly Act[] = step.saves ? ['shorten', 'change'] : ['shorten'];
        const request = { ...step, deed: 'only reads', user: 'same', target: 0 } as const;
        const guest = await this.#visit(this.#guest(request, acts));
        await sleep(SHORT_MS + RUN_OUT_MS[this.configuration.store]);
        return [guest];
      }
      case 'use':
        for (let n = 0; n < USES; n += 1) {
          await sleep((1.5 * SHORT_MS) / USES);
          await this.#ask(n);
        }
        return [];
    }
  }

  #guest(
    { browser, deed, user, target, via }: RequestStep,
    acts = actsOf(deed),
    isGone = false,
    turns?: Turns,
  ): Guest {
    const name = user === 'same' ? (this.#view.browsers[browser]?.uid ?? USERS[0]) : user;
    const login = acts.includes('log in') ? name : undefined;
    const sid = this.#view.browsers[target]?.sid ?? '';
    return new Guest(browser, via % this.#hosts.length, acts, login, sid, isGone, turns);
  }

  async #visit(guest: Guest): Promise<Guest> {
    const url = `${this.#urlOf(guest.instance)}/act?guest=${this.#guests.push(guest) - 1}`;
    const leaving = new AbortController();
    const request = { method: 'POST', signal: leaving.signal };
    const answer = this.#browsers[guest.browser]?.fetch(url, request).then((response) => response.text());
    if (guest.isGone) {
      await guest.entered.passed;
      leaving.abort();
      await answer?.catch(() => undefined);
    } else await answer;
    await guest.left.passed;
    if (guest.isGone || guest.acts.includes('destroy without waiting')) await sleep(UNANNOUNCED_MS);
    return guest;
  }

  #guestOf(url: string): Guest | undefined {
    return this.#guests[Number(/guest=(\d+)/.exec(url)?.[1])];
  }

  async #job({ does, target, via }: Extract<Step, { kind: 'job' }>): Promise<void> {
    const { browsers, rows } = this.#view;
    const instance = via % this.#hosts.length;
    const used = browsers.map(({ sid }) => sid);
    const store = this.place.stores[instance] as DestroyingStore;
    if (does === 'destroys a session') await this.#destroy([used[target] ?? ''], instance);
    else if (does === 'destroys unused sessions')
      await this.#destroy(
        [...rows.keys()].filter((sid) => !used.includes(sid)),
        instance,
      );
    else if (typeof store.clear === 'function') await called((done) => store.clear?.(done));
  }

  async #destroy(sids: readonly string[], instance: number): Promise<void> {
    const store = this.place.stores[instance] as DestroyingStore;
    for (const sid of sids)
      await called((done) => {
        store.destroy(sid, done);
      });
  }
}
