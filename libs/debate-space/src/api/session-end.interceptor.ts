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
import { foundUid, RefusedUid } from '../uid-rule.js';
import { isObject, resolvedUid } from '../session-end/session-user.js';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { concat, defer, EMPTY, from, ignoreElements, tap, type Observable } from 'rxjs';
import { isPromise } from '../async/promises.js';
import { Containment, faultsTo } from '../async/containment.js';
import { getDebateSpaceToken } from './debate-space.tokens.js';

const KEY = 'debate-space:ends-session';

/** Which user of which application a handler with `@EndsDebateSession()` logs out. */
export interface EndsDebateSessionOptions {
  /**
   * Finds the user before the handler runs: in the request, which for GraphQL is that of its context; everything else is
   * in the context.
   * @defaultValue `user` – a string, a number, an ObjectId, or an object or JSON text of one with one of them in `uid`,
   * `id`, `sub`, `userId` or `_id`
   */
  readonly uid?:
    | ((request: Readonly<Record<string, unknown>>, context: ExecutionContext) => string | number | undefined)
    | undefined;
  /** The application of the debate space, when the host has several with a `name`. */
  readonly name?: string | undefined;
}

/**
 * For a handler of HTTP or GraphQL that ends a login which no session store knows of, such as a JWT: when the handler
 * succeeds, its user is logged out of the debate space as well. Handlers of WebSockets and microservices call
 * `DebateSpaceService.logoutUser` instead.
 * @example
 * ```ts
 * @Post('logout')
 * @EndsDebateSession() // the user in request.user, before the handler runs
 * async logout(@Req() request: Request) {
 *   await this.tokens.revoke(request);
 * }
 * ```
 */
export function EndsDebateSession(options: EndsDebateSessionOptions = {}): MethodDecorator & ClassDecorator {
  return applyDecorators(SetMetadata(KEY, options), UseInterceptors(SessionEndInterceptor));
}

/**
 * Ends the debate session of the user whose request it is, over HTTP or GraphQL, when the handler succeeds.
 * Bound by `@EndsDebateSession()` to handlers that end a login which no session store knows of; sessions are watched at
 * their store and do not need it.
 */
@Injectable()
export class SessionEndInterceptor implements NestInterceptor {
  readonly #logger = new Logger('DebateSpace');
  readonly #containment = new Containment(
    faultsTo((event) => {
      if (event.type !== 'fault') return;
      this.#logger.error(`@EndsDebateSession() could not report an end (${event.error}): ${event.where}`);
    }),
  );
  readonly #warnedOf = new WeakSet<object>();
  readonly #moduleRef: ModuleRef;
  readonly #reflector: Reflector;

  constructor(moduleRef: ModuleRef, reflector: Reflector) {
    this.#moduleRef = moduleRef;
    this.#reflector = reflector;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    // For each subscriber: there may be none, or one that retries. Bound: a subscriber may be outside the AsyncLocalStorage
    // that an interceptor in front of us has entered.
    return defer(AsyncResource.bind(() => this.#observed(context, next)));
  }

  #observed(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const record = this.#recordOf(context);
    if (!record) return next.handle();
    const contained = (): unknown => this.#containment.run('recording it', record, undefined);
    // Given up by somebody in front of us, a handler may still succeed: rather one logout too many.
    const handled = next.handle().pipe(tap({ unsubscribe: contained }));
    const recorded = defer(() => {
      const done = contained();
      return isPromise(done) ? from(done).pipe(ignoreElements()) : EMPTY;
    });
    return concat(handled, recorded);
  }

  /** Finds the user before the handler runs. @returns how to record their end */
  #recordOf(context: ExecutionContext): (() => unknown) | undefined {
    const targets = [context.getHandler(), context.getClass()];
    const given = this.#reflector.getAllAndOverride<EndsDebateSessionOptions | undefined>(KEY, targets);
    const { name, uid = defaultUid } = given ?? {};
    const find = () => {
      const call = requestOf(context);
      const user = call && resolvedUid(uid(call.request, context));
      const problem = problemWith(call, user, uid);
      if (problem !== undefined) this.#warnOnce(context, problem);
      return call && typeof user === 'string' ? { user, marks: call.marks } : undefined;
    };
    const found = this.#containment.run('its uid function failed', find, undefined);
    if (!found) return undefined;
    const inject = (): SessionEndWatcher =>
      this.#moduleRef.get(getDebateSpaceToken(name, SessionEndWatcher), { strict: false });
    const watcher = this.#containment.run(
      'is DebateSpaceModule imported, with this name?',
      inject,
      undefined,
    );
    return watcher && (() => watcher.report(found.user, 'explicit', found.marks));
  }

  /** Once for each handler. */
  #warnOnce(context: ExecutionContext, problem: string): void {
    if (this.#warnedOf.has(context.getHandler())) return;
    this.#warnedOf.add(context.getHandler());
    this.#logger.warn(`@EndsDebateSession() on ${context.getClass().name}: ${problem}`);
  }
}

/** A user whom nobody can name would stay logged in to the debate space, at every logout. */
function problemWith(
  call: HandlerCall | undefined,
  user: string | RefusedUid | undefined,
  uid: unknown,
): string | undefined {
  if (!call) return 'HTTP and GraphQL only; call logoutUser of DebateSpaceService';
  if (user instanceof RefusedUid) return `the uid of its user ${user.problem}; give { uid }`;
  const hasUser = Boolean(memberOf(call.request, 'user'));
  return user === undefined && uid === defaultUid && hasUser
    ? 'its user has no uid, id, sub, userId or _id; give { uid }'
    : undefined;
}

/** A request, or a GraphQL context that has none. */
export type HandlerRequest = Readonly<Record<string, unknown>>;

export interface HandlerCall {
  readonly request: HandlerRequest;
  /** What lives as long as this request and no longer, such as its response: by these, each uid is reported once. */
  readonly marks: readonly unknown[];
}

/** The request of HTTP or of a GraphQL context, without a need for their packages; `undefined` for anything else. */
export function requestOf(context: ExecutionContext): HandlerCall | undefined {
  switch (context.getType<string>()) {
    case 'graphql': {
      const graphql = context.getArgByIndex<unknown>(2);
      const request = requestIn(graphql);
      // Over a WebSocket, only the context is new for each operation: the request is the connection's, without a response.
      return { request, marks: [graphql, memberOf(request, 'res')] };
    }
    case 'http': {
      const response = context.getArgByIndex<unknown>(1);
      const request = context.getArgByIndex<HandlerRequest>(0);
      return { request, marks: [memberOf(response, 'raw') ?? response] }; // `raw` is Fastify's
    }
    default:
      return undefined;
  }
}

/** Where the drivers put it; `reply.request` is mercurius'. A context without a request may have the user itself. */
function requestIn(graphql: unknown): HandlerRequest {
  const reply = memberOf(graphql, 'reply');
  const request = memberOf(graphql, 'req') ?? memberOf(graphql, 'request') ?? memberOf(reply, 'request');
  return (request ?? graphql) as HandlerRequest;
}

/** Where guards and passport leave the user. */
export function defaultUid(request: HandlerRequest): string | RefusedUid | undefined {
  return foundUid(memberOf(request, 'user'));
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? Reflect.get(value, name) : undefined;
}
