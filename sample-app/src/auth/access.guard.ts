import {
  ForbiddenException,
  Injectable,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';

type WhoMay = 'everybody' | 'administrators';
/** Who may call a route or a controller. Without it, any user who is logged in. */
export const Access = Reflector.createDecorator<WhoMay>();

/** Guards every route, so that a route without a decorator is not open. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    const access = this.reflector.getAllAndOverride<WhoMay | undefined>(Access.KEY, targets);
    const { user } = context.switchToHttp().getRequest<Request>();
    if (access === 'everybody') return true;
    if (!user) throw new UnauthorizedException();
    const isAllowed = access === undefined || user.role === 'administrator';
    if (!isAllowed) throw new ForbiddenException('Only administrators may see this page.');
    return true;
  }
}
