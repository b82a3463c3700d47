import { randomUUID } from 'node:crypto';
import { Controller, Get, NotFoundException, Post, Render, Req, Res, UseGuards } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceErasures, DebateSpaceService, type ErasureMode } from 'nestjs-debate-space';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { CurrentUser } from '../login/current-user.decorator.js';
import type { User } from '../login/user.js';
import { prefersPages } from '../problems/prefers-pages.js';
import { sendProblem } from '../problems/problem.js';
import { endSession } from '../session/end-session.js';
import { takeNotice } from '../session/notice.js';
import { Sessions } from '../session/sessions.js';

/**
 * What users may ask for under the GDPR. An erasure is kept until it is carried out, also when the debate space is away:
 * the user need not wait for it, nor come back. A real app would erase its own data of the user as well.
 */
@Controller('me')
@UseGuards(AuthenticatedGuard)
export class MeController {
  constructor(
    private readonly debateSpace: DebateSpaceService,
    private readonly erasures: DebateSpaceErasures,
    private readonly sessions: Sessions,
  ) {}

  @Get()
  @Render('my-data')
  page(@Req() request: Request): { notice: string | undefined } {
    return { notice: takeNotice(request) };
  }

  @Get('data')
  async download(@Res() response: Response, @CurrentUser() { uid }: User): Promise<void> {
    const record = await this.debateSpace.findUser(uid);
    if (record === undefined) {
      throw new NotFoundException('The debate space has no data about you: there is nothing to download.');
    }
    response.attachment('my-data-in-the-debate-space.json').send(JSON.stringify(record, undefined, 2));
  }

  @Post('anonymize')
  async anonymize(
    @Req() request: Request,
    @Res() response: Response,
    @CurrentUser() user: User,
  ): Promise<void> {
    await this.#erase('anonymize', user, request, response);
  }

  @Post('delete')
  async delete(@Req() request: Request, @Res() response: Response, @CurrentUser() user: User): Promise<void> {
    await this.#erase('delete', user, request, response);
  }

  /** Stores the request first, then ends the sessions of the user: this one and those of other browsers. */
  async #erase(mode: ErasureMode, { uid }: User, request: Request, response: Response): Promise<void> {
    const { confirmation } = request.body as { confirmation?: unknown };
    if (confirmation !== uid) {
      notConfirmed(mode, request, response);
      return;
    }
    // One of the user's own, which nobody guesses: without it, the answer might be the reference of an administrator.
    const reference = randomUUID();
    await this.erasures.request({ uid, mode, reference, requestedBy: 'the user' });
    await endSession(request);
    await this.sessions.endAllOf(uid);
    request.session.notice = 'We have recorded your request and logged you out.';
    response.redirect(303, `/receipts/${reference}`);
  }
}

function notConfirmed(mode: ErasureMode, request: Request, response: Response): void {
  if (prefersPages(request)) response.status(422).render('my-data', { failed: mode });
  else sendProblem(request, response, { status: 422, detail: 'confirmation must be the user name.' });
}
