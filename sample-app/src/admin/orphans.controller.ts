import {
  Body,
  Controller,
  Get,
  HttpCode,
  Post,
  Redirect,
  Render,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { bulkErasureForm, confirmed } from './bulk-erasure-form.js';
import { erasurePath } from './erasure-path.js';
import { lookedForOrphans, orphansPage, type OrphansPage } from './orphans-page.js';
import { OrphansRefusedFilter } from './orphans-refused.filter.js';
import { Orphans } from './orphans.js';

/** Finds users without an account, and erases them all. For a long list, the command line takes its time better. */
@Controller('admin/orphans')
@UseGuards(AuthenticatedGuard, AdminGuard)
@UseFilters(OrphansRefusedFilter)
export class OrphansController {
  constructor(
    private readonly orphans: Orphans,
    private readonly erasures: DebateSpaceErasures,
  ) {}

  @Get()
  @Render('admin/orphans')
  overview(): Promise<OrphansPage> {
    return lookedForOrphans(this.orphans);
  }

  /** Counts what the same form would do, and does nothing. */
  @Post('dry-run')
  @HttpCode(200)
  @Render('admin/orphans')
  async dryRun(@Body() body: unknown): Promise<OrphansPage> {
    const form = bulkErasureForm(body);
    const found = await this.orphans.findAgain(body);
    const dryRun = await this.erasures.dryRun(found.uids, { mode: form.mode });
    return orphansPage(found, { form, dryRun });
  }

  /** Erases exactly those who were looked at. */
  @Post()
  @Redirect()
  async request(@Body() body: unknown): Promise<{ url: string; statusCode: number }> {
    const { mode, reference } = confirmed(bulkErasureForm(body));
    const { uids } = await this.orphans.findAgain(body);
    const requestedBy = 'administration'; // no personal data: it is kept with the receipts, unencrypted
    await this.erasures.requestMany(uids, { mode, reference, requestedBy });
    return { url: erasurePath(reference), statusCode: 303 };
  }
}
