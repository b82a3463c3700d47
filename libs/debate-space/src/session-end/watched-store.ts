import { setTimeout as pause } from 'node:timers/promises';
import type { SessionRecord } from '../debate-space.options.js';
import { uidOf } from './default-session-uid.js';
import { Endings, type Ending } from './endings.js';
import { LiveSessions } from './live-sessions.js';
import type { EndRecorder } from './end-recorder.js';
import { sessionRequest, type SessionRequest } from './session-request.js';
import { isPromise, observedCall, readStore, type StoreOutcome } from './store-call.js';
import { addStoreLayer, storeMethod, type StoreMethod } from './store-layers.js';

export interface WatchedStoreOptions {
  readonly recorder: EndRecorder;
  readonly uid: (session: SessionRecord, request?: unknown) => string | undefined;
  readonly graceMs: number;
  readonly hurry: AbortSignal;
  readonly fault: (where: string, error: unknown) => void;
}

type MaybePromise<T> = T | Promise<T>;

/** How long an operation of the store may wait for us, in milliseconds. Users must always be able to log out. */
const MOST_WAIT_MS = 250;

/**
 * Sees every operation of one store instance that can end a session (session-endings.md, rules 1 to 3). What it sees
 * goes to the endings; the host's call stays what it was.
 */
export class WatchedStore {
  readonly #store: object;
  readonly #options: WatchedStoreOptions;
  readonly #get: StoreMethod | undefined;
  readonly #all: StoreMethod | undefined;
  readonly #live = new LiveSessions();
  readonly #endings: Endings;
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: SessionRequest | undefined;

  /** Stops watching. */
  readonly release: () => void;

  constructor(store: object, options: WatchedStoreOptions) {
    this.#store = store;
    this.#options = options;
    this.#get = storeMethod(store, 'get');
    this.#all = storeMethod(store, 'all');
    const ask = (sid: string): Promise<string | undefined> => this.#ask(sid);
    this.#endings = new Endings({ ...options, ask });
    this.release = addStoreLayer(store, {
      createSession: (next, args) => this.#createSession(next, args),
      regenerate: (next, args) => this.#regenerate(next, args),
      set: (next, args) => this.#set(next, args),
      destroy: (next, args) => this.#destroy(next, args),
      clear: (next, args) => this.#clear(next, args),
    });
  }

  /** Resolves when every end so far has its verdict. */
  async decided(): Promise<void> {
    await this.#endings.decided();
  }

  #createSession(original: StoreMethod, args: unknown[]): unknown {
    const returned = original.apply(this.#store, args);
    const request = sessionRequest(args[0]);
    if (request) this.#contained(() => { this.#loaded(request, args[1] as SessionRecord); }); // prettier-ignore
    return returned;
  }

  #loaded(request: SessionRequest, session: SessionRecord): void {
    const uid = this.#uidOf(session, request);
    if (uid !== undefined && request.sessionID !== undefined)
      this.#live.link(request.sessionID, uid, request);
  }

  #regenerate(original: StoreMethod, args: unknown[]): unknown {
    this.#regenerating = sessionRequest(args[0]);
    try {
      return original.apply(this.#store, args);
    } finally {
      this.#regenerating = undefined;
    }
  }

  #set(original: StoreMethod, args: unknown[]): unknown {
    const [sid, session] = args as [string, SessionRecord];
    const request = sessionRequest(Reflect.get(Object(session) as object, 'req'));
    let next: string | undefined;
    const prepare = (): MaybePromise<readonly Ending[]> => {
      next = this.#uidOf(session, request);
      const reason = next === undefined ? 'user-removed' : 'user-replaced';
      const begin = (before: string | undefined): readonly Ending[] =>
        before === undefined || before === next ? [] : [this.#endings.begin(sid, before, reason, actors)];
      const actors = request ? [request] : this.#live.requestsOf(sid);
      const known = this.#live.uidOf(sid);
      return request || known !== undefined ? begin(known) : this.#ask(sid).then(begin);
    };
    return this.#perform(original, args, prepare, (outcome) => {
      if (outcome === 'failed') return;
      if (next === undefined) this.#live.forget(sid);
      else if (request) this.#live.link(sid, next, request);
    });
  }

  #destroy(original: StoreMethod, args: unknown[]): unknown {
    const sid = args[0] as string;
    const regenerating = this.#regenerating;
    const prepare = (): MaybePromise<readonly Ending[]> => {
      const known = this.#live.uidOf(sid);
      const actors = this.#actorsOf(sid, regenerating);
      if (known !== undefined) return [this.#endings.begin(sid, known, 'destroyed', actors)];
      // What a request is regenerating without our knowing its user has none.
      if (regenerating) return [];
      return this.#ask(sid).then((uid) =>
        uid === undefined ? [] : [this.#endings.begin(sid, uid, 'destroyed', actors)],
      );
    };
    return this.#perform(original, args, prepare, (outcome) => {
      if (outcome !== 'failed') this.#live.forget(sid);
    });
  }

  #clear(original: StoreMethod, args: unknown[]): unknown {
    const prepare = async (): Promise<readonly Ending[]> =>
      (await this.#everybody()).map(([sid, uid]) =>
        this.#endings.begin(sid, uid, 'cleared', sid === undefined ? [] : this.#live.requestsOf(sid)),
      );
    return this.#perform(original, args, prepare, (outcome) => {
      if (outcome !== 'failed') for (const [sid] of this.#live.all()) this.#live.forget(sid);
    });
  }

  /**
   * Has the ends noted first, then calls the store – in the same tick when nothing has to be waited for, and after
   * `MOST_WAIT_MS` in any case.
   */
  #perform(
    original: StoreMethod,
    args: unknown[],
    prepare: () => MaybePromise<readonly Ending[]>,
    after: (outcome: StoreOutcome) => void,
  ): unknown {
    const prepared = this.#contained(prepare) ?? [];
    let tell: (outcome: StoreOutcome) => void = () => undefined;
    const call = new Promise<StoreOutcome>((resolve) => {
      tell = (outcome) => {
        this.#contained(() => {
          after(outcome);
        });
        resolve(outcome);
      };
    });
    const run = (): unknown => observedCall(original, this.#store, args, tell);
    const follow = (endings: readonly Ending[]): void => {
      for (const ending of endings) this.#endings.follow(ending, call);
    };
    if (!isPromise(prepared) && !prepared.some(({ held }) => isPromise(held))) {
      follow(prepared);
      return run();
    }
    const held = Promise.resolve(prepared).then(async (endings) => {
      for (const ending of endings) await ending.held;
      return endings;
    });
    held.then(follow, (error: unknown) => {
      this.#options.fault('session store', error);
    });
    return Promise.race([held.catch(() => undefined), pause(MOST_WAIT_MS, undefined, { ref: false })]).then(
      run,
    );
  }

  /** Who is ending this session: the request that regenerates it, those that have just let go of it, or any that has it. */
  #actorsOf(sid: string, regenerating: SessionRequest | undefined): readonly SessionRequest[] {
    if (regenerating) return [regenerating];
    const requests = this.#live.requestsOf(sid);
    const without = requests.filter((request) => request.session === undefined || request.session === null);
    return without.length > 0 ? without : requests;
  }

  async #ask(sid: string): Promise<string | undefined> {
    if (!this.#get) return undefined;
    const session = await readStore(this.#get, this.#store, sid);
    return typeof session === 'object' && session !== null
      ? this.#uidOf(session as SessionRecord)
      : undefined;
  }

  /** Every session that has a user, as far as the store can tell; those under way, when it cannot. */
  async #everybody(): Promise<readonly (readonly [sid: string | undefined, uid: string])[]> {
    if (!this.#all) return this.#live.all();
    const all = (await readStore(this.#all, this.#store)) as
      readonly SessionRecord[] | Record<string, SessionRecord>;
    const sessions: (readonly [string | undefined, SessionRecord])[] = Array.isArray(all)
      ? all.map((session: SessionRecord) => [
          typeof session.id === 'string' ? session.id : undefined,
          session,
        ])
      : Object.entries(all);
    return sessions.flatMap(([sid, session]) => {
      const uid = this.#uidOf(session);
      return uid === undefined ? [] : [[sid, uid] as const];
    });
  }

  #uidOf(session: SessionRecord, request?: SessionRequest): string | undefined {
    return uidOf(this.#options.uid(session, request));
  }

  #contained<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#options.fault('session.uid', error);
      return undefined;
    }
  }
}
