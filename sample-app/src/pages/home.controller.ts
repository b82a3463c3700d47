import { Controller, Get, Render, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { CurrentUser } from '../login/current-user.decorator.js';
import type { DemoUser } from '../login/demo-users.js';
import { csrf } from '../session/csrf.js';
import { takeNotice } from '../session/notice.js';

/** What `views/home.eta` shows. */
interface HomePage {
  readonly csrfToken: string;
  readonly notice: string | undefined;
  readonly user: DemoUser;
}

@Controller()
@UseGuards(AuthenticatedGuard)
export class HomeController {
  @Get()
  @Render('home')
  home(@Req() request: Request, @CurrentUser() user: DemoUser): HomePage {
    return {
      csrfToken: csrf.generateToken(request),
      notice: takeNotice(request),
      user,
    };
  }
}
