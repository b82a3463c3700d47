import {
  ForbiddenException,
  Injectable,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { LOGGED_OUT } from '../login/authenticated.guard.js';
import { csrf } from './csrf.js';

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** Marks a form with a file, which is read behind the guards: anyone who reads it calls `assertCsrfToken`. */
export const ReadsFormItself = Reflector.createDecorator<boolean>();

/** For every route: what changes something needs the token of its session. A guard, because Nest has read the body by then. */
@Injectable()
export class CsrfGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request>();
    const isChecked = !SAFE_METHODS.includes(request.method);
    if (isChecked && !this.reflector.get(ReadsFormItself, context.getHandler())) assertCsrfToken(request);
    return true;
  }
}

/** @throws {ForbiddenException} @throws {UnauthorizedException} when the session of the form has expired */
export function assertCsrfToken(request: Request): void {
  if (csrf.isRequestValid(request)) return;
  if (request.isUnauthenticated() && request.path !== '/login') throw new UnauthorizedException(LOGGED_OUT);
  throw new ForbiddenException('This form is no longer valid. Load the page again and repeat.');
}
