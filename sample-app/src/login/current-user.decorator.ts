import { createParamDecorator, UnauthorizedException, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { DemoUser } from './demo-users.js';

/** The user of the session; for handlers behind the `AuthenticatedGuard` or the `LoginGuard`. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): DemoUser => {
  const { user } = context.switchToHttp().getRequest<Request>();
  if (user) return user;
  throw new UnauthorizedException('Please log in first.');
});
