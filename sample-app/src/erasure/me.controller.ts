import { Controller, Post, Redirect, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { DebateSpaceService } from 'nestjs-debate-space';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { CurrentUser } from '../login/current-user.decorator.js';
import type { DemoUser } from '../login/demo-users.js';
import { endSession } from '../session/end-session.js';

/**
 * What users may ask for under the GDPR. The service comes first and the session here ends last, so that a user whose
 * erasure failed is still logged in and can repeat it. A real app would erase its own data of the user in between.
 */
@Controller('me')
@UseGuards(AuthenticatedGuard)
export class MeController {
  constructor(private readonly debateSpace: DebateSpaceService) {}

  @Post('anonymize')
  @Redirect('/login', 303)
  async anonymize(@Req() request: Request, @CurrentUser() { uid }: DemoUser): Promise<void> {
    await this.debateSpace.anonymizeUser(uid);
    await endSession(request);
    request.session.notice =
      'The debate space no longer knows who you are. Your contributions stay there without a name. You are logged out.';
  }

  @Post('delete')
  @Redirect('/login', 303)
  async delete(@Req() request: Request, @CurrentUser() { uid }: DemoUser): Promise<void> {
    await this.debateSpace.deleteUser(uid);
    await endSession(request);
    request.session.notice =
      'The debate space has deleted you and all your contributions. You are logged out.';
  }
}
