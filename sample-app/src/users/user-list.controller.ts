import { BadRequestException, Controller, Get, Header, Query, UseGuards } from '@nestjs/common';
import { DebateSpaceService, type UserPage } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';

const MOST_PER_PAGE = 100;

@Controller('admin')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class UserListController {
  constructor(private readonly debateSpace: DebateSpaceService) {}

  /** One page of the users of the debate space. What is no number becomes NaN, and the library refuses it. */
  @Get('users')
  @Header('Cache-Control', 'no-store')
  async users(@Query('page') page = '1', @Query('per_page') perPage = '20'): Promise<UserPage> {
    if (Number(perPage) > MOST_PER_PAGE) {
      throw new BadRequestException(`per_page must not be above ${MOST_PER_PAGE}.`);
    }
    return this.debateSpace.listUsers({ page: Number(page), perPage: Number(perPage) });
  }
}
