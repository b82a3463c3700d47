import { isPromise } from '../../async/maybe-promise.js';
import type { SessionRecord } from '../session-options.js';
import { isObject } from '../is-object.js';
import { resolvedUid } from '../default-session-uid.js';
import type { DetectorContext } from '../verdict/detector-context.js';
import type { SessionRequest } from '../verdict/session-request.js';
import { storeMethod, type StoreMethod } from './patch-store.js';

/** By session id, where the list has it. */
type SessionUser = readonly [sid: string | undefined, uid: string];

/** Reads out of a store whose sessions it holds. */
export class SessionReader {
  readonly #store: object;
  readonly #context: Pick<DetectorContext, 'uid' | 'containment'>;

  constructor(store: object, context: Pick<DetectorContext, 'uid' | 'containment'>) {
    this.#store = store;
    this.#context = context;
  }

  /** The user of a session. A resolver that throws – at a session without a user, most likely – names nobody. */
  uidOf(session: SessionRecord, request?: SessionRequest): string | undefined {
    const { uid, containment } = this.#context;
    return containment.run('session.uid', () => resolvedUid(uid(session, request?.native)), undefined);
  }

  /**
   * The user of a session, as the store has it now.
   * @throws when the store cannot be read
   */
  async user(sid: string): Promise<string | undefined> {
    const session = await this.#session(sid);
    return session && this.uidOf(session);
  }

  /**
   * The session as the store has it now, if its user is this one.
   * @throws when the store cannot be read, or what the resolver of uids throws
   */
  async lookUp(sid: string, uid: string): Promise<SessionRecord | undefined> {
    const session = await this.#session(sid);
    return session && resolvedUid(this.#context.uid(session)) === uid ? session : undefined;
  }

  /**
   * Every session that has a user.
   * @returns `undefined` when the store has no list; resolves to `undefined` when it cannot list now, or lists something
   * else than sessions
   */
  users(): Promise<readonly SessionUser[] | undefined> | undefined {
    const all = storeMethod(this.#store, 'all');
    const list = async (method: StoreMethod): Promise<readonly SessionUser[] | undefined> => {
      const sessions = entriesOf(await readStore(method, this.#store));
      const users = sessions.flatMap(([sid, session]): SessionUser[] => {
        const uid = this.uidOf(session);
        return uid === undefined ? [] : [[typeof sid === 'string' ? sid : undefined, uid]];
      });
      const areRows = sessions.length > 0 && !sessions.some(([, session]) => 'cookie' in session);
      return users.length === 0 && areRows ? undefined : users;
    };
    return all && this.#context.containment.run('session store', () => list(all), undefined);
  }

  async #session(sid: string): Promise<SessionRecord | undefined> {
    const get = storeMethod(this.#store, 'get');
    const session = get && (await readStore(get, this.#store, sid));
    return isObject(session) ? (session as SessionRecord) : undefined;
  }
}

/** What a store answers to a read: by callback, or by promise when it takes no callback. */
function readStore(method: StoreMethod, store: object, ...args: unknown[]): Promise<unknown> {
  // A method that takes a callback may return a promise that says nothing, long before the callback is called.
  const takesCallback = method.length > args.length;
  return new Promise((resolve, reject) => {
    const callback = (error: unknown, result: unknown): void => {
      if (error) reject(new Error('the store failed to read', { cause: error }));
      else resolve(result);
    };
    const returned = method.apply(store, [...args, callback]);
    if (!isPromise(returned)) return;
    returned.then((result) => {
      if (result !== undefined || !takesCallback) resolve(result);
    }, reject);
  });
}

function entriesOf(all: unknown): readonly (readonly [sid: unknown, session: SessionRecord])[] {
  if (!Array.isArray(all)) return Object.entries(all ?? {}).filter(hasSession);
  return all
    .map((session: unknown) => [(session as SessionRecord | null)?.id, session] as const)
    .filter(hasSession);
}

function hasSession(entry: readonly [unknown, unknown]): entry is readonly [unknown, SessionRecord] {
  return isObject(entry[1]);
}
