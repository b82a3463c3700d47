import { Controller, Get, Param, Post, Redirect, Render, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { DebateSpaceOutbox, type ParkedLogout } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { takeNotice } from '../session/notice.js';
import { outboxPage, type OutboxPage } from './outbox-page.js';

/** What waits for the debate space, and what an administrator can do about it. */
@Controller('admin/outbox')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class OutboxController {
  constructor(private readonly outbox: DebateSpaceOutbox) {}

  @Get()
  @Render('admin/outbox')
  async overview(@Req() request: Request): Promise<OutboxPage> {
    const [stats, parked] = await Promise.all([this.outbox.stats(), this.outbox.parked()]);
    return outboxPage(stats, parked, takeNotice(request));
  }

  @Post('retry')
  @Redirect('/admin/outbox', 303)
  async retryAll(@Req() { session }: Request): Promise<void> {
    const ids: string[] = [];
    let page: readonly ParkedLogout[];
    do {
      page = await this.outbox.parked({ limit: PAGE, skip: ids.length });
      ids.push(...page.map(({ id }) => id));
    } while (page.length === PAGE);
    for (const id of ids) await this.outbox.retry(id);
    session.notice = `Retrying ${ids.length === 1 ? '1 logout' : `${ids.length} logouts`}.`;
  }

  @Post(':id/retry')
  @Redirect('/admin/outbox', 303)
  async retry(@Param('id') id: string, @Req() { session }: Request): Promise<void> {
    session.notice = (await this.outbox.retry(id)) ? 'Retrying the logout.' : GONE;
  }

  @Post(':id/discard')
  @Redirect('/admin/outbox', 303)
  async discard(@Param('id') id: string, @Req() { session, body }: Request): Promise<void> {
    const { confirmed } = Object(body) as { confirmed?: unknown };
    if (confirmed !== 'yes') {
      session.notice = 'Nothing was discarded: confirm it first.';
      return;
    }
    session.notice = (await this.outbox.discard(id)) ? 'Discarded. It will not be sent.' : GONE;
  }
}

const PAGE = 1_000;
const GONE = 'Someone else has already handled it.';
