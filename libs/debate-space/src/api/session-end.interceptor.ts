import {
  applyDecorators,
  Injectable,
  Logger,
  SetMetadata,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ModuleRef, Reflector } from '@nestjs/core';
import { AsyncResource } from 'node:async_hooks';
import { foundUid, type RefusedUid } from '../uid-rule.js';
import { resolvedUid } from '../session-end/session-user.js';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { concat, defer, EMPTY, from, ignoreElements, tap, type Observable } from 'rxjs';
import { isPromise } from '../async/maybe-promise.js';
import { Containment } from '../async/containment.js';
import { getDebateSpaceToken } from './debate-space.tokens.js';

const ENDS_DEBATE_SESSION = 'debate-space:ends-session';

/** Which user of which application a handler with `@EndsDebateSession()` logs out. */
export interface EndsDebateSessionOptions {
  /**
   * Finds the user before the handler runs: in the request, which for GraphQL is that of its context, or in the client
   * of a WebSocket; everything else is in the context.
   * @defaultValue `user`, or for socket.io `data.user` or `request.user` – a string, a number, an ObjectId, or an object
   * or JSON text of one with one of them in `uid`, `id`, `sub`, `userId` or `_id`
   */
  readonly uid?:
    | ((request: Readonly<Record<string, unknown>>, context: ExecutionContext) => string | number | undefined)
    | undefined;
  /** The application of the debate space, when the host has several with a `name`. */
  readonly name?: string | undefined;
}

/**
 * For a handler that ends a login which no session store knows of, such as a JWT: when the handler succeeds, its user
 * is logged out of the debate space as well.
 */
export function EndsDebateSession(options: EndsDebateSessionOptions = {}): MethodDecorator & ClassDecorator {
  return applyDecorators(SetMetadata(ENDS_DEBATE_SESSION, options), UseInterceptors(SessionEndInterceptor));
}

/**
 * Ends the debate session of the user whose request it is, over HTTP, GraphQL or a WebSocket, when the handler succeeds.
 * Bound by `@EndsDebateSession()` to handlers that end a login which no session store knows of; sessions are watched at
 * their store and do not need it.
 */
@Injectable()
export class SessionEndInterceptor implements NestInterceptor {
  readonly #logger = new Logger('DebateSpace');
  readonly #containment = new Containment((event) => {
    if (event.type !== 'fault') return;
    this.#logger.error(`@EndsDebateSession() could not report an end (${event.error}): ${event.where}`);
  });
  readonly #warnedOf = new WeakSet<object>();
  readonly #moduleRef: ModuleRef;
  readonly #reflector: Reflector;

  constructor(moduleRef: ModuleRef, reflector: Reflector) {
    this.#moduleRef = moduleRef;
    this.#reflector = reflector;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    // Bound: a subscriber may be outside the AsyncLocalStorage that an interceptor in front of us has entered.
    const handle = AsyncResource.bind(() => next.handle());
    // For each subscriber: there may be none, or one that retries.
    return defer(AsyncResource.bind(() => this.#observed(context, handle)));
  }

  #observed(context: ExecutionContext, handle: () => Observable<unknown>): Observable<unknown> {
    const call = this.#containment.run('no request was found', () => requestOf(context), undefined);
    const record = call && this.#recordOf(context, call);
    if (!record) return handle();
    const contained = (): unknown => this.#containment.run('recording it', record, undefined);
    // Given up by somebody in front of us, a handler may still succeed: rather one logout too many.
    const handled = handle().pipe(tap({ unsubscribe: contained }));
    const recorded = defer(() => {
      const done = contained();
      return isPromise(done) ? from(done).pipe(ignoreElements()) : EMPTY;
    });
    return concat(handled, recorded);
  }

  /** Finds the user before the handler runs. @returns how to record their end */
  #recordOf(context: ExecutionContext, { request, marks }: HandlerCall): (() => unknown) | undefined {
    const targets = [context.getHandler(), context.getClass()];
    const options: EndsDebateSessionOptions | undefined = this.#reflector.getAllAndOverride(
      ENDS_DEBATE_SESSION,
      targets,
    );
    const { name, uid = defaultUid } = options ?? {};
    const resolve = (): string | undefined => {
      const user = resolvedUid(uid(request, context));
      if (typeof user === 'string') return user;
      if (user || (uid === defaultUid && userOf(request))) this.#warnOfNobody(context, user);
      return undefined;
    };
    const user = this.#containment.run('its uid function failed', resolve, undefined);
    if (user === undefined) return undefined;
    const find = (): SessionEndWatcher =>
      this.#moduleRef.get(getDebateSpaceToken(name, SessionEndWatcher), { strict: false });
    const watcher = this.#containment.run('is DebateSpaceModule imported, with this name?', find, undefined);
    if (!watcher) return undefined;
    return () => watcher.report(user, 'explicit', marks);
  }

  /** Once per handler: a user whom nobody can name would stay logged in to the debate space, at every logout. */
  #warnOfNobody(context: ExecutionContext, refused?: RefusedUid): void {
    if (this.#warnedOf.has(context.getHandler())) return;
    this.#warnedOf.add(context.getHandler());
    const name = context.getClass().name;
    this.#logger.warn(
      refused
        ? `@EndsDebateSession() on ${name}: the uid of its user ${refused.problem}; give { uid }`
        : `@EndsDebateSession() on ${name}: its user has no uid, id, sub, userId or _id; give { uid }`,
    );
  }
}

/** A request, a client of a gateway, or the message of a microservice. */
export type HandlerRequest = Readonly<Record<string, unknown>>;

export interface HandlerCall {
  readonly request: HandlerRequest;
  /** What lives as long as this request and no longer, such as its response: by these, each uid is reported once. */
  readonly marks: readonly unknown[];
}

/** The request of HTTP or of a GraphQL context, or the client of a WebSocket, without a need for their packages. */
export function requestOf(context: ExecutionContext): HandlerCall {
  const first = context.getArgByIndex<HandlerRequest>(0);
  switch (context.getType<string>()) {
    case 'graphql': {
      const graphql = context.getArgByIndex<unknown>(2);
      const request = requestIn(graphql);
      // Over a WebSocket, only the context is new for each operation: the request is the connection's, without a response.
      return { request, marks: [graphql, memberOf(request, 'res')] };
    }
    case 'http': {
      const response = context.getArgByIndex<unknown>(1);
      return { request: first, marks: [memberOf(response, 'raw') ?? response] }; // `raw` is Fastify's
    }
    default:
      // A client of a WebSocket may log in and out many times; a message is handled once.
      return { request: first, marks: [] };
  }
}

/** Where the drivers put it; `reply.request` is mercurius'. A context without a request may have the user itself. */
function requestIn(graphql: unknown): HandlerRequest {
  const reply = memberOf(graphql, 'reply');
  const request = memberOf(graphql, 'req') ?? memberOf(graphql, 'request') ?? memberOf(reply, 'request');
  return (request ?? graphql) as HandlerRequest;
}

/** Where guards and passport leave the user: `user`, or with socket.io `data.user` or the handshake's `request.user`. */
function userOf(request: unknown): unknown {
  const places = [request, memberOf(request, 'data'), memberOf(request, 'request')];
  return places.map((each) => memberOf(each, 'user')).find((user) => user !== undefined && user !== null);
}

export function defaultUid(request: HandlerRequest): string | RefusedUid | undefined {
  return foundUid(userOf(request));
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? Reflect.get(value, name) : undefined;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
