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
import { uidOf } from './default-session-uid.js';
import { EndRecorder, type HeldEnd } from './end-recorder.js';
import { ENDS_DEBATE_SESSION, type EndsDebateSessionOptions } from './ends-debate-session.options.js';

type Request = Readonly<Record<string, unknown>>;
type MaybePromise<T> = T | Promise<T>;

/**
 * Ends the debate session of the request's user when the handler succeeds. Bound by `@EndsDebateSession()` to handlers
 * that end a login which no session store knows of; sessions are watched at their store and do not need it.
 */
@Injectable()
export class SessionEndInterceptor implements NestInterceptor {
  readonly #logger = new Logger('DebateSpace');
  readonly #moduleRef: ModuleRef;
  readonly #reflector: Reflector;

  constructor(moduleRef: ModuleRef, reflector: Reflector) {
    this.#moduleRef = moduleRef;
    this.#reflector = reflector;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request>();
    const held = this.#hold(context, request);
    const handle = (end: HeldEnd | undefined): Observable<unknown> =>
      next.handle().pipe(tap({ complete: () => end?.release([request]), error: () => end?.cancel() }));
    return held instanceof Promise ? from(held).pipe(switchMap(handle)) : handle(held);
  }

  /** Notes the end before the handler runs; whatever goes wrong here is not the handler's problem. */
  #hold(context: ExecutionContext, request: Request): MaybePromise<HeldEnd | undefined> {
    try {
      const targets = [context.getHandler(), context.getClass()];
      const { name, uid = userOf } = this.#reflector.getAllAndOverride<EndsDebateSessionOptions | undefined>(ENDS_DEBATE_SESSION, targets) ?? {}; // prettier-ignore
      const user = uid(request);
      if (user === undefined) return undefined;
      const recorder = this.#moduleRef.get<EndRecorder>(getDebateSpaceToken(name, EndRecorder), {
        strict: false,
      });
      return recorder.hold(user, 'explicit');
    } catch (error) {
      this.#logger.error(`@EndsDebateSession() could not tell of an end (${error instanceof Error ? error.name : typeof error}); is DebateSpaceModule imported, with this name?`); // prettier-ignore
      return undefined;
    }
  }
}

function userOf(request: Request): string | undefined {
  return uidOf(request.user);
}
