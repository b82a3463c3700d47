import { applyDecorators, SetMetadata, UseInterceptors } from '@nestjs/common';
import { SessionEndInterceptor } from './session-end.interceptor.js';
import { ENDS_DEBATE_SESSION, type EndsDebateSessionOptions } from './ends-debate-session.options.js';

/**
 * For a handler that ends a login which no session store knows of, such as a JWT: when the handler succeeds, its user
 * is logged out of the debate space as well.
 */
export function EndsDebateSession(options: EndsDebateSessionOptions = {}): MethodDecorator & ClassDecorator {
  return applyDecorators(SetMetadata(ENDS_DEBATE_SESSION, options), UseInterceptors(SessionEndInterceptor));
}
