import {
  BadRequestException,
  Body,
  Controller,
  Get,
  HttpCode,
  Post,
  Query,
  Render,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceService, InvalidUidError } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { prefersPages } from '../problems/prefers-pages.js';
import { foundUserPage, userListPage, type UserListPage } from './user-list-page.js';

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

  /** By POST: a user name in the address would be in the history of the browser and in the logs of proxies. */
  @Post('find')
  @HttpCode(200)
  @Render('admin/users')
  async find(@Body() body: unknown): Promise<UserListPage> {
    const { uid } = Object(body) as { uid?: unknown };
    const wanted = typeof uid === 'string' ? uid.trim() : '';
    try {
      return foundUserPage(wanted, await this.debateSpace.findUser(wanted));
    } catch (error) {
      if (error instanceof InvalidUidError) return foundUserPage(wanted, undefined);
      throw error;
    }
  }
}
