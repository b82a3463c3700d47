import { Controller, Get, Render, UseGuards } from '@nestjs/common';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';

@Controller('admin')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class AdminController {
  @Get()
  @Render('admin/index')
  overview(): object {
    return {};
  }
}
