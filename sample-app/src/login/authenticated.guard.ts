import { Injectable, UnauthorizedException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

/** To a form whose user was logged in when its page was loaded. */
export const LOGGED_OUT = 'You have been logged out. Log in again.';

@Injectable()
export class AuthenticatedGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    if (request.isAuthenticated()) return true;
    throw new UnauthorizedException(request.method === 'POST' ? LOGGED_OUT : 'Please log in first.');
  }
}
