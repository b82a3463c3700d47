import { ForbiddenException, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { csrf } from './csrf.js';

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** For every route: what changes something needs the token of its session. A guard, because Nest has read the body by then. */
@Injectable()
export class CsrfGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    if (SAFE_METHODS.includes(request.method) || csrf.isRequestValid(request)) return true;
    throw new ForbiddenException('This form is no longer valid. Load the page again and repeat.');
  }
}
