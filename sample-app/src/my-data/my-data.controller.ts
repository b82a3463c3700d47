import { randomUUID } from 'node:crypto';
import { Body, Controller, Get, NotFoundException, Post, Render, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceErasures, DebateSpaceService } from 'nestjs-debate-space';
import * as v from 'valibot';
import type { User } from '../auth/accounts.js';
import { CurrentUser } from '../auth/passport.js';
import { endSession, Sessions, takeNotice } from '../auth/sessions.js';

const ERASURE = v.object({ mode: v.picklist(['anonymize', 'delete']), confirmation: v.string() });

/** The rights of a user under the GDPR. A real app erases its own data of the user as well. */
@Controller()
export class MyDataController {
  constructor(
    private readonly debateSpace: DebateSpaceService,
    private readonly erasures: DebateSpaceErasures,
    private readonly sessions: Sessions,
  ) {}

  @Get()
  @Render('my-data')
  page(@Req() request: Request): object {
    return { notice: takeNotice(request) };
  }

  @Get('my-data.json')
  async download(@Res() response: Response, @CurrentUser() { uid }: User): Promise<void> {
    const record = await this.debateSpace.findUser(uid);
    if (record === undefined) throw new NotFoundException('The debate space has no data about you.');
    response.attachment('my-data.json').send(JSON.stringify(record, undefined, 2));
  }

  /**
   * The request is stored before anything else: it is executed even when the debate space is away and this process ends. Then
   * all sessions of the user end, in this browser and in others.
   */
  @Post('erasure')
  async erase(
    @Body({ schema: ERASURE }) { mode, confirmation }: v.InferOutput<typeof ERASURE>,
    @CurrentUser() { uid }: User,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    if (confirmation.trim() !== uid) {
      response.status(422).render('my-data', { refused: mode });
      return;
    }
    const reference = randomUUID(); // the receipt needs no login, so nobody may guess its address
    await this.erasures.request({ uid, mode, reference, requestedBy: 'the user' });
    await endSession(request);
    await this.sessions.endAllOf(uid);
    response.redirect(303, `/receipts/${reference}`);
  }
}
