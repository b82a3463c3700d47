// What has to be reported, and what may be, by what the browsers and the store say: nothing here comes from the plugin.
import { USERS, type Act, type Step } from './steps.js';

export interface Rules {
  readonly expiry: boolean;
  readonly instances: 1 | 2;
  readonly store: string;
  /** Whether each answer sets the session's cookie again, also after the handler has cleared it. */
  readonly isRolling: boolean;
}

/** A session as its browser or the store shows it. */
export interface Seen {
  readonly uid: string | undefined;
  readonly sid: string;
}

export interface View {
  /** By `performance.now()`. */
  readonly at: number;
  /** What each browser got when it asked who is logged in. */
  readonly browsers: readonly Seen[];
  /** The users of all sessions in the store, by session id. */
  readonly rows: ReadonlyMap<string, string>;
}

/** A request, as its handler and its browser saw it. */
export interface Visit {
  readonly browser: number;
  readonly instance: number;
  readonly acts: readonly Act[];
  /** Who logs in, if somebody does. */
  readonly login: string | undefined;
  /** Who was logged in when the handler began. */
  readonly had: string | undefined;
  /** Whether its client went away before the handler acted. */
  readonly isGone: boolean;
}

export interface Happening {
  readonly kind: Step['kind'];
  readonly visits: readonly Visit[];
  readonly before: View;
  readonly after: View;
}

/** How many logouts of a user have to be reported, and how many more may be. */
export interface Due {
  must: number;
  may: number;
}

/** How long a session lives after a handler has shortened it. */
export const SHORT_MS = 2_000;
/** `Expires` of a cookie names a whole second: the browser forgets it up to a second before the session runs out. */
const EARLY_MS = 1_000;
const WIDE: readonly Act[] = ['end all', 'end others', 'end target'];
const DESTROYING: readonly Act[] = ['destroy', 'destroy without waiting', 'regenerate'];
const LEAVING: readonly Act[] = [...DESTROYING, 'remove user', 'clear cookie'];

export class Oracle {
  readonly #rules: Rules;
  /** Sessions and users that browsers have left: whoever removes the row later ends nothing. */
  readonly #ended = new Set<string>();
  /** Those of them that requests at both instances had then. */
  readonly #endedAcross = new Set<string>();
  /** When a handler has shortened a session, by session id. */
  readonly #shortened = new Map<string, number>();
  /**
   * Allowance: without `session.expiry`, a session that has run out may be reported at any later time, once – when it is
   * found at the next request, or when its row is removed (rule 6) –, or never.
   */
  readonly #late = new Map<string, number>();
  /** Session ids that another instance has given back to a browser that had left them. */
  readonly #givenBack = new Set<string>();

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** Whether so many reports that are not due are those of sessions that have run out. */
  areLate(uid: string, reports: number): boolean {
    const late = this.#late.get(uid) ?? 0;
    if (reports > 0) this.#late.set(uid, late - Math.min(late, reports));
    return reports <= late;
  }

  #allowLate(uid: string, reports: number): void {
    this.#late.set(uid, (this.#late.get(uid) ?? 0) + reports);
  }

  /** @returns by uid, only of users with something due */
  due(happening: Happening): Map<string, Due> {
    const { visits, before, after } = happening;
    // A session of nobody may be new, and first kept by this request.
    for (const { acts, browser } of visits)
      for (const view of acts.includes('shorten') ? [before, after] : [])
        this.#shortened.set(seen(view, browser).sid, before.at);
    const dues = USERS.map((uid) => [uid, this.#dueOf(uid, happening)] as const);
    this.#remember(happening);
    return new Map(dues.filter(([, { must, may }]) => must + may > 0));
  }

  #dueOf(uid: string, happening: Happening): Due {
    const { kind, before, after } = happening;
    const { expiry } = this.#rules;
    const left = [...before.browsers.keys()].filter(
      (browser) => seen(before, browser).uid === uid && seen(after, browser).uid !== uid,
    );
    const live = after.browsers.filter((each) => each.uid === uid).length;
    // Without `rolling` the cookie runs out, however often the session is used.
    const hadTime = (browser: number): boolean =>
      after.at - (this.#shortened.get(seen(before, browser).sid) ?? Infinity) > SHORT_MS - EARLY_MS;
    const ranOut = left.filter(hadTime).length;
    if (!expiry) this.#allowLate(uid, ranOut);
    const ended = left.length - ranOut;
    // Rule 5: once per uid and request. A job has none: each session counts. docs/sessions.md, edge cases: two requests
    // that end sessions of one user at the same moment may be judged together.
    const once = kind === 'job' ? ended : Math.min(1, ended);
    const reports = once + (expiry ? ranOut : 0);
    const due: Due = { must: reports, may: kind === 'pair' ? ended - once : 0 };
    // docs/sessions.md, several instances: the old cookie set again.
    const backs = left.filter((browser) => this.#givenBack.has(seen(before, browser).sid)).length;
    if (backs > 0) {
      due.must = Math.max(0, due.must - backs);
      due.may += reports - due.must;
    }
    // Allowance: one that had the time to run out, and that a request may have ended with the others just before.
    const isWide = happening.visits.some(({ acts }) => acts.some((act) => WIDE.includes(act)));
    if (isWide && expiry && ranOut > 0) {
      due.must = Math.max(1, once);
      due.may += reports - due.must;
    }
    // docs/sessions.md, edge cases: without a client there is no answer at which its ends could be judged together.
    if (kind === 'request' && happening.visits.some(({ isGone }) => isGone)) due.may = Math.max(0, ended - 1);
    if (kind === 'pair') this.#allowForPair(uid, happening, due);
    // docs/sessions.md, edge cases: destroyed without waiting or without a client, and saved back by its own request.
    else if (live > 0)
      due.may += happening.visits.filter((visit) => isSavedBack(uid, visit, happening)).length;
    this.#allowForStrays(uid, happening, due);
    if (this.#rules.instances === 2) due.may += this.#removedAfterItsEnd(uid, happening);
    return due;
  }

  #allowForPair(uid: string, { visits, before, after }: Happening, due: Due): void {
    const [one, other] = visits as readonly [Visit, Visit];
    const browser = one.browser;
    if (browser !== other.browser) return;
    const isAcross = one.instance !== other.instance;
    const isKept = seen(after, browser).uid === uid;
    const may = (): void => void (due.may += 1);
    if (seen(before, browser).uid !== uid) {
      // Allowance: a user whom one request logs in and the other one logs out before any browser could ask. Or whom both log
      // in, where docs/sessions.md, several instances, has the session that was renewed reported.
      const isTwice = isAcross && visits.every(({ login }) => login === uid);
      if (visits.some(({ login }) => login === uid) && (!isKept || isTwice)) may();
      return;
    }
    const leaving = visits.filter((visit) => visit.had === uid && leaves(visit, uid));
    const renewing = visits.filter(({ login }) => login === uid);
    if (isKept && leaving.length > 0 && renewing.length === 0) {
      // docs/sessions.md, edge cases: destroyed, and saved back by the other request, is reported once: the user wanted to
      // leave. Allowance: of a user removed and saved back the page says nothing.
      // Nor of a destroy that is not awaited: its own request may have saved the session back, which then lives on.
      const isDestroyed = leaving.some(({ acts }) => acts.includes('destroy') || acts.includes('regenerate'));
      if (isDestroyed) due.must += 1;
      else may();
    } else if (isKept && leaving.length > 0) {
      // session-endings.md, rule 6: one has left the session, and the other one has renewed it.
      may();
    } else if (!isKept && isAcross) {
      // docs/sessions.md, several instances: both report what they end at the same time, and none an old cookie set again.
      // With shared live sessions both do if one has seen the session in the store after the other's end: the answers of
      // Postgres, over several connections, overtake each other.
      const isShared = this.#rules.expiry;
      const staysInStore = leaving.some(({ acts }) => acts.includes('clear cookie'));
      const isOvertaken = this.#rules.store === 'postgres';
      if (leaving.length === 2 && (!isShared || staysInStore || isOvertaken)) may();
      const staysInBrowser =
        this.#rules.isRolling && leaving.every(({ acts }) => acts.includes('clear cookie'));
      if ((leaving.length === 0 || staysInBrowser) && renewing.length > 0) {
        due.may += due.must;
        due.must = 0;
      }
    }
  }

  /**
   * Allowance: a session with a user that no browser has been seen with, and none has left – its cookie was lost to an
   * aborted answer, to the other answer of a pair, or to the `regenerate` of @fastify/session 10. Its end may be reported.
   */
  #allowForStrays(uid: string, { kind, visits, before, after }: Happening, due: Due): void {
    const removed = this.#straysOf(uid, before).filter((sid) => after.rows.get(sid) !== uid).length;
    const isOne = kind === 'request' && !visits.some(({ isGone }) => isGone);
    due.may += isOne ? Math.max(0, Math.min(1, removed) - due.must) : removed;
  }

  /**
   * docs/sessions.md, edge cases: that a browser has left its session is known to the instance that answered it. Several
   * instances: with shared live sessions to the others, too, unless one has seen or saved the session afterwards.
   */
  #removedAfterItsEnd(uid: string, { before, after }: Happening): number {
    const mayEndAgain = this.#rules.expiry ? this.#endedAcross : this.#ended;
    return [...before.rows].filter(([sid, user]) => {
      const key = `${sid} ${uid}`;
      return user === uid && this.#ended.has(key) && mayEndAgain.has(key) && !after.rows.has(sid);
    }).length;
  }

  #straysOf(uid: string, { browsers, rows }: View): string[] {
    const held = new Set(browsers.map(({ sid }) => sid));
    return [...rows].flatMap(([sid, user]) =>
      user === uid && !held.has(sid) && !this.#ended.has(`${sid} ${uid}`) ? [sid] : [],
    );
  }

  #remember({ visits, before, after }: Happening): void {
    const isAcross = new Set(visits.map(({ instance }) => instance)).size > 1;
    // docs/sessions.md, edge cases: of a call without a callback the store is asked four times, the last time 1.3 s later.
    for (const uid of isAcross ? USERS : [])
      if (visits.some((visit) => isSavedBack(uid, visit, { before, after }))) this.#allowLate(uid, 1);
    // docs/sessions.md, several instances: a session whose cookie the answer of another instance has replaced. The instance
    // that gave it to the browser may report it late, when it sees the browser go on with a third one.
    if (isAcross)
      for (const uid of USERS) {
        const lost = this.#straysOf(uid, after).filter((sid) => !before.rows.has(sid)).length;
        if (lost > 0) this.#allowLate(uid, lost);
      }
    const [one, other] = visits;
    for (const { browser, acts } of visits) {
      const { uid, sid } = seen(after, browser);
      const isBack = uid !== undefined && sid === seen(before, browser).sid;
      if (isAcross && isBack && this.#rules.isRolling && acts.includes('regenerate'))
        this.#givenBack.add(sid);
    }
    if (one && other && isAcross && one.browser === other.browser)
      for (const [{ login }, { had }] of [[one, other] as const, [other, one] as const]) {
        if (login === undefined || login === had) continue;
        // The same page: who was saved last. The instance that logged the other one in may see it at a later request.
        if (seen(after, one.browser).uid !== login) this.#allowLate(login, 1);
      }
    for (const [browser, { uid, sid }] of before.browsers.entries())
      if (uid !== undefined && seen(after, browser).uid !== uid) {
        this.#ended.add(`${sid} ${uid}`);
        if (isAcross) this.#endedAcross.add(`${sid} ${uid}`);
      }
    for (const { uid, sid } of after.browsers) if (uid !== undefined) this.#ended.delete(`${sid} ${uid}`);
  }
}

function seen(view: View, browser: number): Seen {
  return view.browsers[browser] ?? { uid: undefined, sid: '' };
}

/** Whether a request may have destroyed the session of this user before it saved it, and its browser still has it. */
function isSavedBack(
  uid: string,
  { acts, browser, isGone }: Visit,
  { before, after }: Pick<Happening, 'before' | 'after'>,
): boolean {
  const { uid: user, sid } = seen(after, browser);
  const mayDestroy = acts.some(
    (act) => act === 'destroy without waiting' || (isGone && (act === 'end target' || act === 'end all')),
  );
  return mayDestroy && user === uid && sid === seen(before, browser).sid;
}

/** Whether a request leaves this user's session. */
function leaves({ acts, login }: Visit, uid: string): boolean {
  return login === undefined ? acts.some((act) => LEAVING.includes(act)) : login !== uid;
}
