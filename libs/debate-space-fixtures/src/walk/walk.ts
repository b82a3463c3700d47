// Takes the steps of a walk at hosts with the plugin, and holds what it reports against the oracle.
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents, type DebateSpaceEvent } from 'nestjs-debate-space';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Observable } from 'rxjs';
import { Browser } from '../browser.js';
import { Latch } from '../latch.js';
import { using } from '../service.js';
import { called } from '../session-jobs.js';
import { Steps } from '../steps.js';
import { startHost, type Hand, type Platform, type WalkHost } from './hand.js';
import { Oracle, SHORT_MS, type Due, type Rules, type Seen, type View, type Visit } from './oracle.js';
import type { Place, PlaceName } from './places.js';
import { actsOf, BROWSERS, inWords, USERS, type Act, type RequestStep, type Step } from './steps.js';

export interface Configuration extends Rules {
  readonly platform: Platform;
  readonly store: PlaceName;
}

export type Wrong = 'missed' | 'invented' | 'twice';
export interface Finding {
  readonly wrong: Wrong;
  readonly text: string;
}

export interface Walked {
  readonly steps: number;
  /** How many logouts had to be reported. */
  readonly ends: number;
  /** Of the step that was the last one: what comes after a wrong report says nothing. */
  readonly findings: readonly Finding[];
}

/** A request of the walk that is under way. */
interface Guest extends Visit {
  readonly target: number;
  /** Awaited from step to step. */
  readonly turn: () => Promise<void>;
  readonly finish: () => void;
  readonly isGone: boolean;
  readonly entered: Latch;
  /** Passed when the handler has returned and the response is closed. */
  readonly left: Latch;
}

/** How long a due report may take on a busy machine. */
const REPORT_TIMEOUT_MS = 5_000;
/** What is not due is decided as soon as the response has closed: here it may come a little later than the answer. */
const SETTLE_MS = { memory: 15, 'slow memory': 40, redis: 30, postgres: 40 } as const;
/** Stores in servers count in seconds. */
const RUN_OUT_MS = { memory: 200, 'slow memory': 200, redis: 400, postgres: 1_700 } as const;
/** For what nobody says that it is done: a store that is not awaited, the last save of a request that was aborted. */
const UNANNOUNCED_MS = 100;
const USES = 6;

interface DestroyingStore {
  destroy(sid: string, callback: (error?: unknown) => void): void;
  clear?(callback: (error?: unknown) => void): void;
}

/** One walk, from an empty store to the stop of the apps. */
export class Walk {
  readonly #configuration: Configuration;
  readonly #place: Place;
  readonly #service: DebateSpaceSimulator;
  /** A service knows the users of other walks as well. */
  readonly #mark: string;
  readonly #oracle: Oracle;
  readonly #hosts: WalkHost[] = [];
  readonly #browsers: Browser[] = [];
  readonly #guests = new Map<string, Guest>();
  readonly #reported = new Map<string, number>();
  /** How many of these have been held against the oracle. */
  readonly #compared = new Map<string, number>();
  #view: View = { browsers: [], rows: new Map() };
  #count = 0;
  #ends = 0;

  constructor(configuration: Configuration, place: Place, service: DebateSpaceSimulator, mark: string) {
    this.#configuration = configuration;
    this.#place = place;
    this.#service = service;
    this.#mark = mark;
    this.#oracle = new Oracle(configuration);
  }

  async run(steps: readonly Step[]): Promise<Walked> {
    const findings: Finding[] = [];
    let taken = 0;
    try {
      await this.#start();
      for (const [n, step] of steps.entries()) {
        taken += 1;
        findings.push(...(await this.#take(step, `step ${n + 1}`)));
        if (findings.length > 0) break;
      }
    } finally {
      for (const host of this.#hosts) await host.stop(); // has every verdict fall, and delivers what there is
    }
    if (findings.length === 0) findings.push(...this.#compare(new Map(), 'at the end'), ...this.#undelivered());
    return { steps: taken, ends: this.#ends, findings };
  }

  async #start(): Promise<void> {
    const { platform, policy, expiry, instances } = this.#configuration;
    const { stores, storage } = this.#place;
    for (const [n, store] of stores.slice(0, instances).entries()) {
      const debateSpace = using(this.#service, {
        storage,
        storageKey: 'a key that protects nothing',
        logout: { concurrency: 50, storageTimeoutMs: 20_000 }, // a busy machine is no storage that is away
        session: {
          policy,
          ...(expiry ? { store: store as never, expiry: { sweepMs: 50 } } : {}),
        },
      });
      const host = await startHost({
        ...{ platform, store, debateSpace },
        arrived: async (url) => this.#guestOf(url)?.turn(),
        act: (url, hand) => this.#act(url, hand, n),
      });
      this.#hosts.push(host);
      const events = host.app.get(DebateSpaceEvents).events$ as Observable<DebateSpaceEvent>;
      events.subscribe((event) => {
        if (event.type === 'session-ended') this.#reported.set(event.uid, this.#reportsOf(event.uid) + 1);
      });
    }
    for (let n = 0; n < BROWSERS; n += 1) this.#browsers.push(new Browser(this.#hosts[0]?.url ?? ''));
    // Each instance finds its store with the first request that has a session.
    for (const [n] of this.#hosts.entries()) await this.#ask(n);
    for (const [browser, user] of (['ann', 'ann', 'ben'] as const).entries())
      await this.#visit(this.#guest({ browser, deed: 'logs in', user, target: 0, via: browser }));
    this.#view = await this.#look();
  }

  async #take(step: Step, when: string): Promise<Finding[]> {
    const [before, at] = [this.#view, performance.now()];
    const visits = await this.#do(step);
    const after = await this.#look();
    const tookMs = performance.now() - at;
    this.#view = after;
    const due = this.#oracle.due({ kind: step.kind, visits, before, after, tookMs });
    for (const { must } of due.values()) this.#ends += must;
    const isComplete = (): boolean =>
      [...due].every(([uid, { must }]) => this.#reportsOf(uid) - (this.#compared.get(uid) ?? 0) >= must);
    for (const until = performance.now() + REPORT_TIMEOUT_MS; !isComplete() && performance.now() < until; )
      await sleep(5);
    const mayBeMore = [...due.values()].some(({ may }) => may > 0);
    await sleep(SETTLE_MS[this.#configuration.store] + (mayBeMore ? 300 : 0));
    return this.#compare(due, `${when}, ${inWords(step)}`);
  }

  /** What was reported since the last time, against what is due. */
  #compare(due: ReadonlyMap<string, Due>, when: string): Finding[] {
    const findings: Finding[] = [];
    for (const uid of USERS.map((user) => user + this.#mark)) {
      const reports = this.#reportsOf(uid) - (this.#compared.get(uid) ?? 0);
      this.#compared.set(uid, this.#reportsOf(uid));
      const { must, may } = due.get(uid) ?? { must: 0, may: 0 };
      let tooMany = Math.max(0, reports - must - may);
      const late = Math.min(tooMany, this.#oracle.late.get(uid) ?? 0);
      this.#oracle.late.set(uid, (this.#oracle.late.get(uid) ?? 0) - late);
      tooMany -= late;
      const text = `${when}: ${uid.replace(this.#mark, '')} was reported ${reports} times; due: ${must}${may > 0 ? ` to ${must + may}` : ''}`;
      if (reports < must) findings.push({ wrong: 'missed', text });
      if (tooMany > 0) findings.push({ wrong: must + may > 0 ? 'twice' : 'invented', text });
    }
    return findings;
  }

  #undelivered(): Finding[] {
    return USERS.flatMap((user) => {
      const uid = user + this.#mark;
      const delivered = this.#service.received.logouts.filter((each) => each === uid).length;
      const text = `${user}: ${this.#reportsOf(uid)} ends, ${delivered} logouts delivered`;
      return delivered < this.#reportsOf(uid) ? [{ wrong: 'missed' as const, text }] : [];
    });
  }

  #reportsOf(uid: string): number {
    return this.#reported.get(uid) ?? 0;
  }

  async #look(): Promise<View> {
    return { browsers: await this.#ask(this.#count), rows: await this.#place.rows() };
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

  async #do(step: Step): Promise<readonly Visit[]> {
    switch (step.kind) {
      case 'request': {
        const guest = this.#guest(step, { isGone: step.gone });
        await this.#visit(guest);
        return [guest];
      }
      case 'pair': {
        const turns = step.order && new Steps(step.order.map((isOne) => (isOne ? 'one' : 'other')));
        const guests = (['one', 'other'] as const).map((name) =>
          this.#guest(step[name], {
            turn: () => turns?.next(name) ?? Promise.resolve(),
            finish: () => turns?.finish(name),
          }),
        );
        await Promise.all(guests.map((guest) => this.#visit(guest)));
        return guests;
      }
      case 'job':
        await this.#job(step);
        return [];
      case 'run out': {
        const acts: readonly Act[] = step.saves ? ['shorten', 'change'] : ['shorten'];
        const guest = { ...this.#guest({ ...step, deed: 'only reads', user: 'same', target: 0 }), acts };
        await this.#visit(guest);
        await sleep(SHORT_MS + RUN_OUT_MS[this.#configuration.store]);
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
    more: Partial<Pick<Guest, 'turn' | 'finish' | 'isGone'>> = {},
  ): Guest {
    const acts = actsOf(deed);
    const name = user === 'same' ? this.#view.browsers[browser]?.uid : user + this.#mark;
    return {
      ...{ browser, target, acts, instance: via % this.#hosts.length },
      login: acts.includes('log in') ? (name ?? USERS[0] + this.#mark) : undefined,
      ...{ turn: () => Promise.resolve(), finish: () => undefined, isGone: false },
      ...more,
      entered: new Latch(),
      left: new Latch(2),
    };
  }

  async #visit(guest: Guest): Promise<void> {
    const id = String((this.#count += 1));
    this.#guests.set(id, guest);
    const leaving = new AbortController();
    const browser = this.#browsers[guest.browser];
    const init = { method: 'POST', signal: leaving.signal };
    const answer = browser
      ?.fetch(`${this.#urlOf(guest.instance)}/act?guest=${id}`, init)
      .then((response) => response.text());
    if (guest.isGone) {
      await guest.entered.passed;
      leaving.abort();
      await answer?.catch(() => undefined);
    } else await answer;
    await guest.left.passed;
    if (guest.isGone || guest.acts.includes('destroy without waiting')) await sleep(UNANNOUNCED_MS);
  }

  #guestOf(url: string): Guest | undefined {
    const [, id = ''] = /guest=(\d+)/.exec(url) ?? [];
    return this.#guests.get(id);
  }

  async #act(url: string, hand: Hand, instance: number): Promise<void> {
    const guest = this.#guestOf(url);
    if (!guest) return;
    guest.had = hand.user;
    void hand.closed.then(() => {
      guest.answeredAt = performance.now();
      guest.left.open();
      guest.finish();
    });
    guest.entered.open();
    try {
      if (guest.isGone) await hand.closed;
      await guest.turn();
      for (const act of guest.acts) {
        await this.#perform(act, hand, guest, instance);
        await guest.turn();
      }
    } finally {
      guest.left.open();
    }
  }

  async #perform(act: Act, hand: Hand, guest: Guest, instance: number): Promise<void> {
    const rows = async (): Promise<string[]> => {
      const user = guest.login ?? guest.had;
      return [...(await this.#place.rows())].flatMap(([sid, uid]) => (uid === user ? [sid] : []));
    };
    switch (act) {
      case 'destroy':
        return void (await hand.destroy());
      case 'destroy without waiting':
        hand.destroyWithoutWaiting();
        return;
      case 'regenerate':
        return void (await hand.regenerate());
      case 'log in':
        guest.loggedInAt = performance.now();
        return void (await hand.logIn(guest.login ?? ''));
      case 'remove user':
        return void (await hand.removeUser());
      case 'clear cookie':
        hand.clearCookie();
        return;
      case 'shorten':
        hand.shorten();
        return;
      case 'change':
        hand.change();
        return;
      case 'end all':
        return this.#destroy(await rows(), instance);
      case 'end others':
        return this.#destroy(
          (await rows()).filter((sid) => sid !== hand.sid),
          instance,
        );
      case 'end target':
        return this.#destroy([this.#view.browsers[guest.target]?.sid ?? ''], instance);
    }
  }

  async #job({ does, target, via }: Extract<Step, { kind: 'job' }>): Promise<void> {
    const { browsers, rows } = this.#view;
    const instance = via % this.#hosts.length;
    if (does === 'destroys a session') await this.#destroy([browsers[target]?.sid ?? ''], instance);
    else if (does === 'clears the store') {
      const store = this.#place.stores[instance] as DestroyingStore;
      if (typeof store.clear === 'function') await called((done) => store.clear?.(done));
    } else {
      const used = browsers.map(({ sid }) => sid);
      await this.#destroy(
        [...rows.keys()].filter((sid) => !used.includes(sid)),
        instance,
      );
    }
  }

  async #destroy(sids: readonly string[], instance: number): Promise<void> {
    const store = this.#place.stores[instance] as DestroyingStore;
    for (const sid of sids)
      await called((done) => {
        store.destroy(sid, done);
      });
  }
}
