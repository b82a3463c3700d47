import { ForbiddenException, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

export class AdministratorsOnly extends ForbiddenException {
  constructor() {
    super('Only administrators may see this.');
  }
}

/** Stands behind the `AuthenticatedGuard`. */
@Injectable()
export class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { user } = context.switchToHttp().getRequest<Request>();
    if (user?.role === 'administrator') return true;
    throw new AdministratorsOnly();
  }
}
