import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionRecord } from './session-end.js';
import { isObject } from './session-user.js';

/** The property of a request, of the platform's and of Node's, that holds its scope. A `WeakMap` of all requests costs a fast host a quarter. */
const SCOPE = Symbol('request scope');

interface ScopedRequest {
  [SCOPE]?: RequestScope;
}

/** A request on which a session library keeps its session. */
interface SessionHolder {
  readonly session?: unknown;
  readonly sessionID?: string;
  readonly sessionStore?: unknown;
}

/** A session that an open request has loaded or saved. */
export interface OwnedSession {
  readonly scope: RequestScope;
  /** The sessions of its store. */
  readonly store: { released(session: OwnedSession): void };
  readonly sid: string;
  /** The user of the session, as far as this request knows. */
  uid: string | undefined;
  /** As the request has loaded or saved it. */
  readonly session: SessionRecord | undefined;
  /** Whether the head of its answer was sent when a call left the session: it cannot bring the cookie back. */
  isAnswered: boolean;
}

/** Called when a request closes that has never owned a session. */
export interface UnownedListener {
  closedWithoutSession(scope: RequestScope): void;
}

/** One request and its sessions. A request owns the sessions that it has loaded or saved, until its response closes. */
export class RequestScope {
  static #moments = 0;
  /** A counter that orders requests and ends: a clock has too few steps for that, and may be set back. */
  static readonly moment = (): number => (RequestScope.#moments += 1);

  /** The moment at which the request arrived. */
  readonly since = RequestScope.moment();
  readonly sessions: OwnedSession[] = [];
  /** Its place in {@link ArrivingRequests}. */
  place: number | undefined;
  /** Resolves when the answer can change nothing any more. */
  answered: Promise<void> | undefined;
  /** The moment at which its response closed. */
  closedAt = Infinity;
  /** Whether the client left before the head of the answer, with its cookies, was sent. */
  isAborted = false;
  /** Whether a look at an end has found the request without its session: what comes later, another one has caused. */
  hasLetGo = false;
  #isListening = false;
  #isOver = false;
  /** Several apps may watch one adapter. */
  readonly #unowned: UnownedListener[] = [];

  constructor(
    /** The request of the platform; for Express it is Node's own. */
    readonly native: object,
    readonly raw: IncomingMessage,
    readonly res: ServerResponse,
  ) {
    (native as ScopedRequest)[SCOPE] = this;
    if (raw !== native) (raw as ScopedRequest)[SCOPE] = this;
  }

  /** Of the platform's request, or of Node's: express-session also runs in front of Fastify. */
  get session(): object | undefined {
    return isObject(this.#holder.session) ? this.#holder.session : undefined;
  }

  /** The id of the session that the request has now: a new one after `regenerate`, `undefined` after it let go of its session. */
  get sessionID(): string | undefined {
    const { session } = this;
    return session && (this.#holder.sessionID ?? (session as { sessionId?: string }).sessionId);
  }

  /** That the session library has given to the request. */
  get sessionStore(): object | undefined {
    return storeIn(this.native, this.raw);
  }

  get #holder(): SessionHolder {
    const native = this.native as SessionHolder;
    return isObject(native.session) || this.raw === native ? native : (this.raw as SessionHolder);
  }

  get isClosed(): boolean {
    return this.#isOver || isClosed(this.res) || (!this.res.socket && this.res.writableFinished);
  }

  /**
   * Listens for the close of the response. A request with a cookie probably has a session: listening at once costs less
   * than after Express has prepared the response.
   */
  listen(unowned?: UnownedListener): void {
    if (unowned && !this.#unowned.includes(unowned)) this.#unowned.push(unowned);
    if (this.#isListening) return;
    this.#isListening = true;
    const closed = (): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.closedAt = RequestScope.moment();
      this.isAborted = !this.res.headersSent;
      for (const session of this.sessions) session.store.released(session);
      if (this.sessions.length === 0) for (const each of this.#unowned) each.closedWithoutSession(this);
    };
    this.res.on('close', closed);
    if (mayNeverClose(this.res)) this.res.on('finish', closed);
  }

  /** @returns whether the request is open, and so owns the session now */
  own(session: OwnedSession): boolean {
    if (!this.#isListening && this.isClosed) return false;
    this.listen();
    if (!this.#isOver) this.sessions.push(session);
    return !this.#isOver;
  }

  owned(store: object, sid: string): OwnedSession | undefined {
    for (const each of this.sessions) if (each.sid === sid && each.store === store) return each;
    return undefined;
  }
}

/** An array, because adding a request to a `Set` and deleting it costs each request a microsecond. */
export class ArrivingRequests {
  readonly all: RequestScope[] = [];

  add(scope: RequestScope): void {
    scope.place ??= this.all.push(scope) - 1;
  }

  /** @returns whether the request was there */
  delete(scope: RequestScope): boolean {
    const { place } = scope;
    const last = this.all.at(-1);
    if (place === undefined || !last) return false;
    this.all[place] = last;
    last.place = place;
    this.all.pop();
    scope.place = undefined;
    return true;
  }
}

/** The scope of a request of a watched app. WebSockets, and the stand-in requests of `store.load`, have none. */
export function scopeOf(request: unknown): RequestScope | undefined {
  return isObject(request) ? (request as ScopedRequest)[SCOPE] : undefined;
}

/** The store that a session library has given to a request: to the platform's, or to Node's. */
export function storeIn(native: object, raw: object): object | undefined {
  const own = (native as SessionHolder).sessionStore; // may be an accessor of the host
  if (isObject(own)) return own;
  const { sessionStore } = raw as SessionHolder;
  return isObject(sessionStore) ? sessionStore : undefined;
}

/** Whether the request opens a WebSocket: nobody ends its response, so its store calls count as those of a job. */
export function isUpgrade(request: IncomingMessage): boolean {
  return (request as { readonly upgrade?: unknown }).upgrade === true;
}

/** Works for HTTP/2 too, whose responses have no `closed`. */
export function isClosed(response: object): boolean {
  const either = response as { closed?: boolean; stream?: { destroyed?: boolean } };
  return either.closed ?? either.stream?.destroyed ?? false;
}

/** Without a real connection, as on serverless platforms and with `inject`, a finished response may never close. */
export function mayNeverClose({ socket }: ServerResponse): boolean {
  return (
    typeof (socket as { on?: unknown } | null)?.on !== 'function' || !('destroySoon' in (socket as object))
  );
}

/** Whether an adapter gave the response a stand-in connection. Such an adapter takes `writableEnded` for complete. */
export function hasStubConnection({ socket }: { readonly socket?: unknown }): boolean {
  return isObject(socket) && !('writableLength' in socket);
}

/** The path that the browser requested; Express shortens `url` for what is mounted under a path. */
export function pathOf(request: object): string {
  const { originalUrl, url } = request as { originalUrl?: unknown; url?: unknown };
  const requested = typeof originalUrl === 'string' ? originalUrl : typeof url === 'string' ? url : '/';
  return requested.split('?', 1)[0] ?? '/';
}
