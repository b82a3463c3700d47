import type { Containment } from '../containment.js';
import type { SessionRecord, SessionUid } from '../debate-space.options.js';
import { resolvedUid } from './default-session-uid.js';
import type { SessionRequest } from './session-request.js';
import { storeMethod } from './patch-store.js';
import { readStore, type StoreMethod } from './store-call.js';

/** Reads out of a store whose sessions it holds. */
export class SessionReader {
  readonly #store: object;
  readonly #uid: SessionUid;
  readonly #containment: Containment;

  constructor(store: object, uid: SessionUid, containment: Containment) {
    this.#store = store;
    this.#uid = uid;
    this.#containment = containment;
  }

  /** The user of a session. Throws what the resolver throws. */
  uidIn(session: SessionRecord, request?: SessionRequest): string | undefined {
    return resolvedUid(this.#uid(session, request?.native));
  }

  /** The user of a session. A resolver that throws – at a session without a user, most likely – names nobody. */
  uidOf(session: SessionRecord, request?: SessionRequest): string | undefined {
    return this.#containment.run('session.uid', () => this.uidIn(session, request), undefined);
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
    const get = storeMethod(this.#store, 'get');
    if (!get) return undefined;
    const session = await readStore(get, this.#store, sid);
    return isRecord(session) ? session : undefined;
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
        return uid === undefined ? [] : [[sid, uid]];
      });
      const areRows = sessions.length > 0 && !sessions.some(([, session]) => 'cookie' in session);
      return users.length === 0 && areRows ? undefined : users;
    };
    return all && Promise.resolve(this.#containment.run('session store', () => list(all), undefined));
  }
}

/** By session id, where the list has it. */
type SessionUser = readonly [sid: string | undefined, uid: string];

function entriesOf(all: unknown): readonly (readonly [string | undefined, SessionRecord])[] {
  if (!Array.isArray(all)) return Object.entries(all ?? {}).filter((entry): entry is [string, SessionRecord] => isRecord(entry[1])); // prettier-ignore
  const idOf = ({ id }: SessionRecord): string | undefined => (typeof id === 'string' ? id : undefined);
  return all.filter(isRecord).map((session) => [idOf(session), session]);
}

function isRecord(value: unknown): value is SessionRecord {
  return typeof value === 'object' && value !== null;
}
