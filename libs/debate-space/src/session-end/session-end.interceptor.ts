import {
  Injectable,
  Logger,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ModuleRef, Reflector } from '@nestjs/core';
import { AsyncResource } from 'node:async_hooks';
import { defer, finalize, from, switchMap, tap, type Observable } from 'rxjs';
import { Containment } from '../containment.js';
import { getDebateSpaceToken } from '../debate-space.tokens.js';
import { resolvedUid } from './default-session-uid.js';
import { EndRecorder, type HeldEnd } from './end-recorder.js';
import { ENDS_DEBATE_SESSION, type EndsDebateSessionOptions } from './ends-debate-session.options.js';
import { askedBy, defaultUid, userOf, type Asked } from './requester.js';
import { isClosed } from './session-request.js';
import { isPromise } from '../is-promise.js';

/**
 * Ends the debate session of the user who asks, over HTTP, GraphQL or a WebSocket, when the handler succeeds. Bound by
 * `@EndsDebateSession()` to handlers that end a login which no session store knows of; sessions are watched at their
 * store and do not need it.
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
    return defer(AsyncResource.bind(() => this.#noting(context, handle)));
  }

  #noting(context: ExecutionContext, handle: () => Observable<unknown>): Observable<unknown> {
    const asked = this.#containment.run('no request was found', () => askedBy(context), undefined);
    const held = asked && this.#hold(context, asked);
    const told = (tell: (end: HeldEnd | undefined) => unknown): void => {
      void this.#containment.run(
        'noting it',
        () => (isPromise(held) ? held.then(tell) : tell(held)),
        undefined,
      );
    };
    const ended = (): void => {
      told((end) => end?.release(asked?.marks ?? []));
    };
    const failed = (): void => {
      told((end) => end?.cancel());
    };
    let isHandled = false;
    const handled = (): Observable<unknown> => {
      isHandled = true;
      // Given up by somebody in front of us, a handler may still succeed: rather one logout too many.
      return defer(handle).pipe(tap({ complete: ended, error: failed, unsubscribe: ended }));
    };
    if (!isPromise(held)) return handled();
    const givenUp = (): void => {
      if (!isHandled) failed();
    };
    return from(held).pipe(switchMap(handled), finalize(givenUp));
  }

  /** Notes the end before the handler runs. */
  #hold(context: ExecutionContext, { requester, marks }: Asked): ReturnType<EndRecorder['hold']> {
    const targets = [context.getHandler(), context.getClass()];
    const { name, uid = defaultUid } = this.#reflector.getAllAndOverride<EndsDebateSessionOptions | undefined>(ENDS_DEBATE_SESSION, targets) ?? {}; // prettier-ignore
    const resolve = (): string | undefined => {
      const user = resolvedUid(uid(requester, context));
      if (user === undefined && uid === defaultUid && isObject(userOf(requester)))
        this.#warnOfNobody(context);
      return user;
    };
    const user = this.#containment.run('its uid function failed', resolve, undefined);
    if (user === undefined) return undefined;
    const isOpen = (): boolean => !marks.some((mark) => isObject(mark) && isClosed(mark));
    const hold = (): ReturnType<EndRecorder['hold']> =>
      this.#moduleRef
        .get<EndRecorder>(getDebateSpaceToken(name, EndRecorder), { strict: false })
        .hold(user, 'explicit', undefined, isOpen);
    return this.#containment.run('is DebateSpaceModule imported, with this name?', hold, undefined);
  }

  /** Once per handler: a user whom nobody can name would stay logged in over there, at every logout. */
  #warnOfNobody(context: ExecutionContext): void {
    if (this.#warnedOf.has(context.getHandler())) return;
    this.#warnedOf.add(context.getHandler());
    this.#logger.warn(`@EndsDebateSession() on ${context.getClass().name}: its user has no uid, id, sub, userId or _id; give { uid }`); // prettier-ignore
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
