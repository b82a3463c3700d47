import { Controller, Get, Res, UseGuards } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { stringify } from 'csv-stringify';
import type { Response } from 'express';
import { pipeline } from 'node:stream/promises';
import { DebateSpaceService, type DebateSpaceUser } from 'nestjs-debate-space';

const columns = ['uid', 'full_name', 'email', 'created_at'];

@Controller('admin/users')
@UseGuards(AuthGuard('jwt')) // and your guard for administrators
export class UsersExportController {
  constructor(private readonly debateSpace: DebateSpaceService) {}

  @Get('users.csv')
  async csv(@Res() response: Response): Promise<void> {
    const users = this.debateSpace.users({ perPage: 100 });
    response.attachment('users.csv');
    await pipeline(users, stringify({ header: true, columns, escape_formulas: true }), response);
  }

  @Get('users.ndjson')
  async ndjson(@Res() response: Response): Promise<void> {
    const users = this.debateSpace.users({ perPage: 100 });
    response.attachment('users.ndjson');
    await pipeline(users, linesOf, response);
  }
}

async function* linesOf(users: AsyncIterable<DebateSpaceUser>): AsyncGenerator<string> {
  for await (const user of users) yield `${JSON.stringify(user)}\n`;
}
