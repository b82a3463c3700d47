import { chain, isPromise, type MaybePromise } from '../async/promises.js';
import type { FoundSession, SessionRecord } from './session-end.js';
import { asStored, hasExpired, isObject, resolvedUid } from './session-user.js';
import { RefusedUid } from '../uid-rule.js';
import type { WatchContext } from './context.js';
import { storeMethod, type StoreMethod } from './store-calls.js';

/** A session as a store lists it; without the id where the store does not tell it. */
export type ListedSession = readonly [sid: string | undefined, session: SessionRecord];

type ReaderContext = Pick<WatchContext, 'uid' | 'containment' | 'waits' | 'warnings'>;

/** How long a store may take to answer. */
const READ_TIMEOUT_MS = 5_000;
/** The same during a shutdown, and for a store that has missed its last timeout. */
const SHUTDOWN_TIMEOUT_MS = 1_000;
const SLOW_STORE_TIMEOUT_MS = 250;
/** How long a promise of `undefined` may precede a callback. A store that never calls back answers by its promise. */
const CALLBACK_GRACE_MS = 1_000;

/** Reads out of a store whose sessions it holds. Synchronous where the store is. */
export class SessionReader {
  readonly #store: object;
  readonly #context: ReaderContext;
  /** How the store answers, as far as it has shown: the number of parameters that a method declares may be wrong. */
  #answersBy: 'callback' | 'promise' | undefined;
  #isSlow = false;

  /** Whether the uid function takes the request: a guard may set `request.user` after the session was loaded. */
  readonly readsRequest: boolean;

  constructor(store: object, context: ReaderContext) {
    this.#store = store;
    this.#context = context;
    this.readsRequest = context.uid.length > 1;
  }

  /**
   * The user of a session. A uid function that throws – at a session without a user, most likely – finds no user; a uid that
   * is refused is a warning.
   * @param request the platform's own
   */
  uidOf(session: SessionRecord, request?: object): string | undefined {
    const { uid, containment, warnings } = this.#context;
    try {
      const found = resolvedUid(uid(asStored(session), request)); // of each request: without a closure
      if (!(found instanceof RefusedUid)) return found;
      warnings.warnOfRefusedUid(found.problem, session);
    } catch (error) {
      containment.report('session.uid', error);
    }
    return undefined;
  }

  /**
   * The user of a session, as the store has it now.
   * @throws when the store cannot be read, or does not answer in time
   */
  user(sid: string): MaybePromise<string | undefined> {
    return chain(
      () => this.#session(sid),
      (session) => session && this.uidOf(session),
    );
  }

  /** The same, or `undefined` if the session has expired: some stores return expired sessions. */
  liveUser(sid: string): MaybePromise<string | undefined> {
    return chain(
      () => this.#session(sid),
      (session) => (session && !hasExpired(session) ? this.uidOf(session) : undefined),
    );
  }

  /**
   * The session as the store has it now, if it has a user.
   * @throws when the store cannot be read, or what the uid function throws
   */
  async find(sid: string): Promise<FoundSession | undefined> {
    const session = await this.#session(sid);
    if (!session) return undefined;
    const uid = resolvedUid(this.#context.uid(asStored(session)));
    return typeof uid === 'string' ? { uid, session } : undefined;
  }

  /** Every session. `undefined` when the store has no list, cannot list now, or lists something else than sessions. */
  sessions(): MaybePromise<readonly ListedSession[] | undefined> {
    const all = storeMethod(this.#store, 'all');
    if (!all) return undefined;
    const list = (): MaybePromise<readonly ListedSession[] | undefined> =>
      chain(
        () => this.#read(all, []),
        (answer) => {
          const sessions = entriesOf(answer);
          const areRows = sessions.length > 0 && !sessions.some(([, session]) => 'cookie' in session);
          return areRows && !sessions.some(([, session]) => this.uidOf(session)) ? undefined : sessions;
        },
      );
    return this.#context.containment.run('session store', list, undefined);
  }

  #session(sid: string): MaybePromise<SessionRecord | undefined> {
    const get = storeMethod(this.#store, 'get');
    return chain(
      () => get && this.#read(get, [sid]),
      (session) => (isObject(session) ? (session as SessionRecord) : undefined),
    );
  }

  /** What a store answers to a read: by callback, at once or later, or by promise. */
  #read(method: StoreMethod, args: readonly unknown[]): MaybePromise<unknown> {
    let answer: { readonly error: unknown; readonly result: unknown } | undefined;
    let settle: (() => void) | undefined;
    const callback = (error: unknown, result: unknown): void => {
      this.#answersBy = 'callback';
      answer = { error, result };
      settle?.();
    };
    const returned: unknown = Reflect.apply(method, this.#store, [...args, callback]);
    const answered = (): unknown => {
      if (answer?.error) throwUnlessMissing(answer.error);
      return answer?.error ? undefined : answer?.result;
    };
    if (answer) {
      if (isPromise(returned)) returned.then(undefined, () => undefined); // it has said all
      return answered();
    }
    const promised = new Promise<unknown>((resolve) => {
      settle = () => {
        resolve(Promise.resolve().then(answered));
      };
      if (!isPromise(returned)) return;
      returned.then(
        (result) => {
          if (result !== undefined || this.#answersBy === 'promise') resolve(result);
          // The promise of a method that calls back may say nothing, long before the callback is called.
          else if (this.#answersBy === undefined && method.length <= args.length)
            setTimeout(() => {
              if (!answer) this.#answersBy = 'promise';
              resolve(undefined);
            }, CALLBACK_GRACE_MS).unref();
        },
        (error: unknown) => {
          resolve(
            Promise.resolve().then(() => {
              throwUnlessMissing(error);
            }),
          );
        },
      );
    });
    return this.#withTimeout(promised);
  }

  /** Rejects when the store does not answer in time. */
  #withTimeout(answer: Promise<unknown>): Promise<unknown> {
    const { waits, warnings, containment } = this.#context;
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        clearTimeout(timer);
        stop();
      };
      const rejectLate = (): void => {
        settled();
        this.#isSlow = true;
        reject(new Error('the store does not answer'));
        containment.run('session store', () => {
          warnings.warn('store-not-answering');
        });
      };
      const limitMs = this.#isSlow ? SLOW_STORE_TIMEOUT_MS : READ_TIMEOUT_MS;
      let timer = setTimeout(rejectLate, limitMs).unref();
      const stop = waits.onClose(() => {
        if (limitMs < SHUTDOWN_TIMEOUT_MS) return;
        clearTimeout(timer);
        timer = setTimeout(rejectLate, SHUTDOWN_TIMEOUT_MS).unref();
      });
      answer.then(settled, settled);
      answer.then((result) => {
        this.#isSlow = false;
        resolve(result);
      }, reject);
    });
  }
}

/** express-session and @fastify/session take `ENOENT`, the error of stores in files, for a session that is not there. */
function throwUnlessMissing(error: unknown): void {
  if (isObject(error) && (error as { readonly code?: unknown }).code === 'ENOENT') return;
  throw new Error('the store failed to read', { cause: error });
}

/** No `flatMap`: a store may list tens of thousands, in one turn of the event loop. */
function entriesOf(all: unknown): readonly ListedSession[] {
  const entries: readonly (readonly [sid: string | undefined, session: unknown])[] = Array.isArray(all)
    ? all.map((session: unknown) => [idOf(session), session])
    : Object.entries(all ?? {});
  return entries.filter((entry): entry is ListedSession => isObject(entry[1]));
}

function idOf(session: unknown): string | undefined {
  const id = (session as SessionRecord | null)?.id;
  return typeof id === 'string' ? id : undefined;
}
