import { createParamDecorator, UnauthorizedException, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { User } from './user.js';

/** The user of the session; for handlers behind the `AuthenticatedGuard` or the `LoginGuard`. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): User => {
  const { user } = context.switchToHttp().getRequest<Request>();
  if (user) return user;
  throw new UnauthorizedException('Please log in first.');
});
