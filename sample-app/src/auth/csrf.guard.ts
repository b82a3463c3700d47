import { ForbiddenException, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { csrfSync } from 'csrf-sync';
import type { Request } from 'express';

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** A token per session, in a hidden field of each form. Passport renews the session, and so the token, at a login. */
export const csrf = csrfSync({
  getTokenFromRequest: ({ body }) => (body as { _csrf?: string } | undefined)?._csrf,
});

/** Every request that changes something must have the token of its session. */
@Injectable()
export class CsrfGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    if (SAFE_METHODS.includes(request.method) || csrf.isRequestValid(request)) return true;
    throw new ForbiddenException('This form is no longer valid. Load its page again and repeat.');
  }
}
