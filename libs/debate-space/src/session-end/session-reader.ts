import type { SessionRecord, SessionUid } from '../debate-space.options.js';
import { resolvedUid } from './default-session-uid.js';
import type { SessionRequest } from './session-request.js';
import { readStore, type StoreMethod } from './store-call.js';
import { storeMethod } from './store-layers.js';

/** Reads out of a store whose sessions it holds. */
export class SessionReader {
  readonly #store: object;
  readonly #uid: SessionUid;
  readonly #fault: (where: string, error: unknown) => void;
  readonly #get: StoreMethod | undefined;
  readonly #all: StoreMethod | undefined;

  constructor(store: object, uid: SessionUid, fault: (where: string, error: unknown) => void) {
    this.#store = store;
    this.#uid = uid;
    this.#fault = fault;
    this.#get = storeMethod(store, 'get');
    this.#all = storeMethod(store, 'all');
  }

  /** The user of a session. Throws what the resolver throws. */
  uidIn(session: SessionRecord, request?: SessionRequest): string | undefined {
    return resolvedUid(this.#uid(session, request?.native ?? request));
  }

  /** The user of a session. A resolver that throws – at a session without a user, most likely – names nobody. */
  uidOf(session: SessionRecord, request?: SessionRequest): string | undefined {
    try {
      return this.uidIn(session, request);
    } catch (error) {
      this.#fault('session.uid', error);
      return undefined;
    }
  }

  /**
   * The user of a session, as the store has it now.
   * @throws when the store cannot be read
   */
  async user(sid: string): Promise<string | undefined> {
    const session = await this.session(sid);
    return session && this.uidOf(session);
  }

  /**
   * A session as the store has it now.
   * @throws when the store cannot be read
   */
  async session(sid: string): Promise<SessionRecord | undefined> {
    if (!this.#get) return undefined;
    const session = await readStore(this.#get, this.#store, sid);
    return isRecord(session) ? session : undefined;
  }

  /** Every session that has a user; `undefined` when the store does not list its sessions, or cannot now. */
  async users(): Promise<readonly (readonly [sid: string | undefined, uid: string])[] | undefined> {
    if (!this.#all) return undefined;
    let all: readonly SessionRecord[] | Record<string, SessionRecord>;
    try {
      all = (await readStore(this.#all, this.#store)) as typeof all;
    } catch (error) {
      this.#fault('session store', error);
      return undefined;
    }
    const sessions: (readonly [string | undefined, SessionRecord])[] = Array.isArray(all)
      ? all.map((session: SessionRecord) => [
          typeof session.id === 'string' ? session.id : undefined,
          session,
        ])
      : Object.entries(all);
    return sessions.flatMap(([sid, session]) => {
      const uid = this.uidOf(session);
      return uid === undefined ? [] : [[sid, uid] as const];
    });
  }
}

function isRecord(value: unknown): value is SessionRecord {
  return typeof value === 'object' && value !== null;
}
