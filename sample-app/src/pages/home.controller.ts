import { Controller, Get, Render, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { takeNotice } from '../session/notice.js';

@Controller()
@UseGuards(AuthenticatedGuard)
export class HomeController {
  @Get()
  @Render('home')
  home(@Req() request: Request): { notice: string | undefined } {
    return { notice: takeNotice(request) };
  }
}
