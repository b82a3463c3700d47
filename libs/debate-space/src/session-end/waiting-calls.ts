import type { WatchContext } from './context.js';

/** In place of a session id: `clear` ends all sessions. */
const ALL_SESSIONS = Symbol('all sessions');

type SessionKey = string | typeof ALL_SESSIONS;

/**
 * The store calls that wait (session-endings.md, rule 8): each ends a session whose user nobody knows, and waits for the
 * read that finds the user, for at most `answerTimeoutMs`. Later calls for the same session stay behind it, and all later
 * calls stay behind a `clear`, which stays behind all earlier ones.
 */
export class WaitingCalls {
  readonly #context: Pick<WatchContext, 'containment' | 'reporter'>;
  /** The last waiting call by session id. The promises never reject. */
  readonly #last = new Map<SessionKey, Promise<void>>();
  #deadline: Promise<void> | undefined;

  constructor(context: Pick<WatchContext, 'containment' | 'reporter'>) {
    this.#context = context;
  }

  /** The calls that a call with these arguments has to wait for: those for the same sessions; all, if it is a `clear`. */
  before(args: ArrayLike<unknown>): Promise<unknown> | undefined {
    if (this.#last.size === 0) return undefined;
    const sids = sidsOf(args);
    const isClear = sids.includes(ALL_SESSIONS);
    const keys: readonly SessionKey[] = isClear ? [...this.#last.keys()] : [ALL_SESSIONS, ...sids];
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    return before.length > 0 ? Promise.all(before) : undefined;
  }

  /** The calls of one turn of the event loop share the timer of their deadline: there may be thousands. */
  callAfterRead(
    read: Promise<unknown>,
    where: string,
    call: () => unknown,
    args: ArrayLike<unknown>,
  ): Promise<unknown> {
    if (!this.#deadline) {
      const { answerTimeoutMs } = this.#context.reporter;
      this.#deadline = new Promise((resolve) => setTimeout(resolve, answerTimeoutMs).unref());
      setImmediate(() => (this.#deadline = undefined));
    }
    return this.callAfter(Promise.race([read, this.#deadline]), where, call, args);
  }

  /** @returns what the call returns, for a caller that expects a promise */
  callAfter(
    before: Promise<unknown>,
    where: string,
    call: () => unknown,
    args: ArrayLike<unknown>,
  ): Promise<unknown> {
    const callback = args[args.length - 1];
    const late = before.then(() => {
      try {
        return call();
      } catch (error) {
        if (typeof callback !== 'function') throw error;
        return void Reflect.apply(callback, undefined, [error]);
      }
    });
    const sids = sidsOf(args);
    const over = (): void => {
      for (const sid of sids) if (this.#last.get(sid) === settled) this.#last.delete(sid);
    };
    const settled = late.then(over, (error: unknown) => {
      over();
      this.#context.containment.report(where, error); // the caller may not expect a promise
    });
    for (const sid of sids) this.#last.set(sid, settled);
    return late;
  }
}

/** The session ids of a call. Some stores take several at once; `clear` takes none. */
function sidsOf(args: ArrayLike<unknown>): readonly SessionKey[] {
  const first = args[0];
  if (typeof first !== 'string' && !Array.isArray(first)) return [ALL_SESSIONS];
  return [first as string | string[]].flat();
}
