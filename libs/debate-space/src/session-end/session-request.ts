import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Containment } from './containment.js';
import { isObject } from './session-user.js';
import { cookieChangesOf, type CookieChanges } from './cookie-changes.js';

const OBSERVED = Symbol('the request as it is seen here');
/** On the prototype of a platform's requests: makes what is seen here of a request that is not seen yet. */
export const OBSERVE = Symbol('sees the request');
/**
 * On a session, the request that has it, as express-session's `req`. Copies and stores know nothing of symbols; a
 * `WeakMap` with the session of every request costs a fast host a quarter of its requests, in garbage (measured).
 */
const OWNER = Symbol('request');

interface Owned {
  readonly req?: unknown;
  [OWNER]?: NativeRequest;
}

/** As much of a platform's request as is needed here: one of Express, or of any server that express-session serves. */
export interface NativeRequest {
  [OBSERVED]?: SessionRequest;
  [OBSERVE]?(): SessionRequest | undefined;
  readonly headers?: IncomingHttpHeaders;
  readonly socket?: Socket | null;
  readonly res?: ServerResponse | null;
  readonly sessionID?: string | undefined;
  readonly session?: unknown;
}

interface HeardResponse extends ServerResponse {
  [OBSERVED]?: SessionRequest;
}

/** Hears of the end of a request. */
export interface CloseListener {
  readonly containment: Containment;
  /** Whether it need not hear of requests that have loaded a session. */
  readonly isForOthers?: boolean;
  closed(request: SessionRequest): void;
}

/** A request as far as its session goes. Each request makes one: it asks no clock, which may cost as much as all the rest. */
export class SessionRequest implements CookieChanges {
  static #moments = 0;
  /** The platform's own request. */
  readonly native: NativeRequest;
  /** Kept from when the request was first seen: engine.io, for one, sets `req.res` to null. */
  readonly res: ServerResponse;
  /**
   * A WebSocket upgrade, to which express-ws gives a response that nobody ends: the request lasts as long as its
   * connection, and no cookie of it reaches the browser.
   */
  readonly isUpgrade: boolean;
  /** When it was first seen, as {@link SessionRequest.moment} counts. */
  readonly since = SessionRequest.moment();
  /** Whether it has had a session of a store that is watched. */
  hasLoaded = false;
  /** Whether something is to be done before its answer leaves. */
  hasGate = false;
  /**
   * When the cookies of the answer left, as {@link SessionRequest.moment} counts: with the head, which may be long before
   * the body has, or when it was closed, where that is not known; 0 when it is still open.
   */
  answeredAt = 0;
  /** When its client left before the handler had ended the response, by `Date.now()`; 0 when it has not. */
  abortedAt = 0;
  /** Whether it is known to be closed. */
  #isOver = false;
  /** Whether the client left before the head of a response, with its cookies, could. */
  #unanswered = false;
  #isHeard = false;
  /** Most requests have one: no array for each. */
  #listener: CloseListener | undefined;
  #moreListeners: CloseListener[] | undefined;
  #cookieChanges: CookieChanges | undefined;
  /** Of an upgrade. */
  readonly #connection: Socket | null | undefined;
  /** Without one, as on serverless platforms and with `inject`, a response that has finished may never be closed. */
  readonly #hasConnection: boolean;

  constructor(native: NativeRequest, response: ServerResponse) {
    this.native = native;
    this.res = response;
    const { socket } = response;
    this.isUpgrade = socket === null && native.headers?.upgrade !== undefined;
    this.#connection = this.isUpgrade ? native.socket : undefined;
    this.#hasConnection = !socket || socket instanceof Socket;
    native[OBSERVED] = this;
    (response as HeardResponse)[OBSERVED] ??= this;
  }

  /** Counts what happens to requests and sessions, in its order. */
  static moment(): number {
    return (SessionRequest.#moments += 1);
  }

  /** The id of the session that the request has now; another one after `regenerate`. */
  get sessionID(): string | undefined {
    return this.native.sessionID;
  }

  get session(): unknown {
    return this.native.session;
  }

  get cookieHeader(): string | undefined {
    return this.native.headers?.cookie;
  }

  /**
   * Tells the listener once when the response is closed, or the connection of an upgrade.
   * @returns whether it will: not when it is closed already
   */
  onClose(listener: CloseListener): boolean {
    if (this.#isOver && this.isClosed) return false;
    if (!this.#isHeard) {
      if (this.isClosed) {
        this.#noteClosed();
        return false;
      }
      this.listen();
    }
    const first = this.#listener;
    if (!first || (this.hasLoaded && first.isForOthers === true)) this.#listener = listener;
    else (this.#moreListeners ??= []).push(listener);
    return true;
  }

  /** Listens for the end of the request, which is open: once, however many want to know. */
  listen(): void {
    if (this.#isHeard) return;
    this.#isHeard = true;
    if (this.isUpgrade) {
      this.#connection?.on('close', () => {
        this.closed();
      });
      return;
    }
    const { res: response } = this;
    const closed = (): void => {
      this.closed();
    };
    response.on('close', closed);
    if (!this.#hasConnection) response.on('finish', closed);
  }

  /** The response is closed. Never throws. */
  closed(): void {
    const first = this.#listener;
    const more = this.#moreListeners;
    this.#listener = undefined; // the second of two events has none
    this.#moreListeners = undefined;
    this.#isHeard = false;
    try {
      if (!this.#isOver) this.#noteClosed();
    } catch (error) {
      first?.containment.report('response close', error);
    }
    if (first) tell(first, this);
    if (more) for (const listener of more) tell(listener, this);
  }

  get isClosed(): boolean {
    if (this.isUpgrade) return this.#connection?.destroyed ?? true;
    return isClosed(this.res) || (!this.#hasConnection && (this.#isOver || isFlushed(this.res)));
  }

  /** Closed after the handler had ended the response: nothing of the host runs for it any more. */
  get isFinished(): boolean {
    return this.isClosed && (this.isUpgrade || this.res.writableEnded);
  }

  /** Nothing that the request still does changes the cookies of its browser. */
  get isCommitted(): boolean {
    return this.isUpgrade || this.res.headersSent || this.isClosed;
  }

  /** Whether the head of the response, with its cookies, has reached the client. */
  get isAnswered(): boolean {
    return !this.isUpgrade && this.res.headersSent && !this.#unanswered;
  }

  /** The request has no session any more: it has let go of the one that it had. */
  get hasLetGo(): boolean {
    return this.session === undefined || this.session === null;
  }

  get setCookies(): readonly string[] {
    return this.#sentChanges.setCookies;
  }

  get clearsCookies(): boolean {
    return this.#sentChanges.clearsCookies;
  }

  get #sentChanges(): CookieChanges {
    return this.#cookieChanges ?? this.#readChanges();
  }

  /** What the answer changes, as far as it is known by now. */
  protected readCookieChanges(): CookieChanges {
    return cookieChangesOf(this.res);
  }

  #readChanges(): CookieChanges {
    const changes = this.readCookieChanges();
    if (this.res.headersSent) this.#cookieChanges = changes; // final from now on
    return changes;
  }

  /** The head of the answer leaves with what is written now. */
  noteHead(): void {
    if (this.answeredAt === 0) this.answeredAt = SessionRequest.moment();
  }

  #noteClosed(): void {
    this.#isOver = true;
    if (!this.isUpgrade && !this.res.writableEnded) this.abortedAt = Date.now();
    this.noteHead();
    if (!this.res.headersSent) this.#unanswered = true;
  }
}

function tell(listener: CloseListener, request: SessionRequest): void {
  if (request.hasLoaded && listener.isForOthers === true) return;
  try {
    listener.closed(request);
  } catch (error) {
    listener.containment.report('response close', error);
  }
}

/** The request, if it is one with a response – and not the stand-in that `store.load` makes. */
export function sessionRequest(value: unknown): SessionRequest | undefined {
  if (!isObject(value)) return undefined;
  const native: NativeRequest = value;
  const known = native[OBSERVED];
  if (known) return known;
  if (native[OBSERVE]) return native[OBSERVE]();
  const { res } = native;
  return typeof res?.once === 'function' ? new SessionRequest(native, res) : undefined;
}

/** The request, if it is seen already. */
export function seenRequest(native: NativeRequest): SessionRequest | undefined {
  return native[OBSERVED];
}

/**
 * To be called as soon as there is a request: a property that is added or read after Express has given the request a
 * prototype of its own costs half a microsecond (measured).
 */
export function observe(native: NativeRequest, response: ServerResponse): SessionRequest {
  return native[OBSERVED] ?? new SessionRequest(native, response);
}

/** The request of a response, if it is seen here. */
export function requestOf(response: object): SessionRequest | undefined {
  return (response as HeardResponse)[OBSERVED];
}

/** Notes whose session it is, where the session library does not. */
export function setOwner(session: Owned, native: NativeRequest): void {
  if (!('req' in session)) session[OWNER] = native;
}

/** The request that has a session; none when a job or a script has made it. */
export function ownerOf(session: Owned | null | undefined): SessionRequest | undefined {
  return sessionRequest(session?.req) ?? sessionRequest(session?.[OWNER]);
}

function isFlushed(response: ServerResponse): boolean {
  if (response.writableFinished || !hasStubConnection(response)) return response.writableFinished;
  return Reflect.get(response, 'finished'); // unlike `writableEnded`, not while the answer is held
}

/**
 * Whether an adapter has given the response a connection that is no stream, such as @codegenie/serverless-express. Then
 * `writableFinished` is never true, and the adapter takes a response with `writableEnded` for complete.
 */
export function hasStubConnection({ socket }: { readonly socket?: unknown }): boolean {
  return isObject(socket) && !('writableLength' in socket);
}

/** Also of HTTP/2, whose responses have no `closed`. */
export function isClosed(response: object): boolean {
  const either = response as { closed?: boolean; stream?: { destroyed?: boolean } };
  return either.closed ?? either.stream?.destroyed ?? false;
}

/** Of the URL that the browser requested; Express shortens `url` for what is mounted under a path. */
export function pathOf(request: object): string {
  const { originalUrl, url } = request as { originalUrl?: unknown; url?: unknown };
  const asked = typeof originalUrl === 'string' ? originalUrl : typeof url === 'string' ? url : '/';
  return asked.split('?', 1)[0] ?? '/';
}
