import { BadRequestException, Controller, Get, Query, Req, Res, UseGuards } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceService } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { prefersPages } from '../problems/prefers-pages.js';
import { userListPage } from './user-list-page.js';

const MAX_PER_PAGE = 100;

@Controller('admin/users')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class UserListController {
  constructor(private readonly debateSpace: DebateSpaceService) {}

  /** One page of the users of the debate space. What is no number becomes NaN, and the library refuses it. */
  @Get()
  async users(
    @Req() request: Request,
    @Res() response: Response,
    @Query('page') page = '1',
    @Query('per_page') perPage = '20',
  ): Promise<void> {
    if (Number(perPage) > MAX_PER_PAGE) {
      throw new BadRequestException(`per_page must not be above ${MAX_PER_PAGE}.`);
    }
    const list = await this.debateSpace.listUsers({ page: Number(page), perPage: Number(perPage) });
    response.vary('Accept');
    if (prefersPages(request)) response.render('admin/users', userListPage(list));
    else response.json(list);
  }
}
