import {
  Injectable,
  Logger,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ModuleRef, Reflector } from '@nestjs/core';
import { from, switchMap, tap, type Observable } from 'rxjs';
import { getDebateSpaceToken } from '../debate-space.tokens.js';
import { resolvedUid } from './default-session-uid.js';
import { EndRecorder, type HeldEnd } from './end-recorder.js';
import { ENDS_DEBATE_SESSION, type EndsDebateSessionOptions } from './ends-debate-session.options.js';
import { askedBy, defaultUid, userOf, type Requester } from './requester.js';
import { isPromise } from '../is-promise.js';

/**
 * Ends the debate session of the user who asks, over HTTP, GraphQL or a WebSocket, when the handler succeeds. Bound by
 * `@EndsDebateSession()` to handlers that end a login which no session store knows of; sessions are watched at their
 * store and do not need it.
 */
@Injectable()
export class SessionEndInterceptor implements NestInterceptor {
  readonly #logger = new Logger('DebateSpace');
  readonly #warnedOf = new WeakSet<object>();
  readonly #moduleRef: ModuleRef;
  readonly #reflector: Reflector;

  constructor(moduleRef: ModuleRef, reflector: Reflector) {
    this.#moduleRef = moduleRef;
    this.#reflector = reflector;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { requester, marks } = askedBy(context);
    const held = this.#hold(context, requester);
    const told = (tell: (end: HeldEnd | undefined) => unknown): void => {
      if (isPromise(held)) void held.then(tell);
      else tell(held);
    };
    const ended = (): void => {
      told((end) => end?.release(marks));
    };
    const failed = (): void => {
      told((end) => end?.cancel());
    };
    // Given up by somebody in front of us, a handler may still succeed: rather one logout too many.
    const handle = (): Observable<unknown> =>
      next.handle().pipe(tap({ complete: ended, error: failed, unsubscribe: ended }));
    return isPromise(held) ? from(held).pipe(switchMap(handle)) : handle();
  }

  /** Notes the end before the handler runs; whatever goes wrong here is not the handler's problem. */
  #hold(context: ExecutionContext, requester: Requester): ReturnType<EndRecorder['hold']> {
    const targets = [context.getHandler(), context.getClass()];
    const { name, uid = defaultUid } = this.#reflector.getAllAndOverride<EndsDebateSessionOptions | undefined>(ENDS_DEBATE_SESSION, targets) ?? {}; // prettier-ignore
    let cure = 'its uid function failed';
    try {
      const user = resolvedUid(uid(requester, context));
      if (user === undefined) {
        if (uid === defaultUid && isObject(userOf(requester))) this.#warnOfNobody(context);
        return undefined;
      }
      cure = 'is DebateSpaceModule imported, with this name?';
      const token = getDebateSpaceToken(name, EndRecorder);
      return this.#moduleRef.get<EndRecorder>(token, { strict: false }).hold(user, 'explicit');
    } catch (error) {
      this.#logger.error(`@EndsDebateSession() could not tell of an end (${error instanceof Error ? error.name : typeof error}): ${cure}`); // prettier-ignore
      return undefined;
    }
  }

  /** Once per handler: a user whom nobody can name would stay logged in over there, at every logout. */
  #warnOfNobody(context: ExecutionContext): void {
    if (this.#warnedOf.has(context.getHandler())) return;
    this.#warnedOf.add(context.getHandler());
    this.#logger.warn(`@EndsDebateSession() on ${context.getClass().name}: its user has no uid, id, sub or userId; give { uid }`); // prettier-ignore
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
