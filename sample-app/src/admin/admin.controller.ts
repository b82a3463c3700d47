import {
  Body,
  Controller,
  Get,
  HttpCode,
  Param,
  ParseEnumPipe,
  Post,
  Query,
  Redirect,
  Render,
  Req,
  Res,
  Sse,
  type MessageEvent,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  DebateSpaceErasures,
  DebateSpaceOutbox,
  ErasureError,
  InvalidArgumentError,
  type ErasureDryRun,
  type ErasureStatus,
} from 'nestjs-debate-space';
import { concatMap, endWith, map, takeWhile, type Observable } from 'rxjs';
import * as v from 'valibot';
import { Access } from '../auth/access.guard.js';
import { Sessions, takeNotice, type Notice } from '../auth/sessions.js';
import { duration, erasureView, moment } from '../erasure-view.js';
import {
  EMPTY_FORM,
  ERASURE_FORM,
  EXAMPLE,
  isConfirmed,
  linesOf,
  mistakesIn,
  type ErasureForm,
  type Mistakes,
} from './erasure-form.js';

const REFERENCE = v.pipe(v.string(), v.nonEmpty());
const ACTIONS = { pause: 'pause', resume: 'resume', retry: 'retry', cancel: 'cancel' } as const;
const MAX_LISTED = 20;

interface Shown {
  readonly reference?: string | undefined;
  readonly form?: ErasureForm;
  readonly mistakes?: Mistakes;
  readonly dryRun?: ErasureDryRun;
  readonly notice?: Notice | undefined;
}

/** The administrators' page: lists of erasures, and the logouts that wait or are parked. */
@Controller('admin')
@Access('administrators')
export class AdminController {
  constructor(
    private readonly erasures: DebateSpaceErasures,
    private readonly outbox: DebateSpaceOutbox,
    private readonly sessions: Sessions,
  ) {}

  /** @param reference the list to show; without it, the newest */
  @Get()
  @Render('admin')
  page(
    @Req() request: Request,
    @Query('reference') reference?: string,
    @Query('example') example?: string,
  ): Promise<object> {
    const form = example === undefined ? EMPTY_FORM : { ...EMPTY_FORM, uids: EXAMPLE };
    return this.#page({ reference, form, notice: takeNotice(request) });
  }

  /** Counts what the form would do, and does nothing. */
  @Post('erasures/dry-run')
  @HttpCode(200)
  @Render('admin')
  async dryRun(@Body({ schema: ERASURE_FORM }) form: ErasureForm): Promise<object> {
    return this.#page({ form, dryRun: await this.erasures.dryRun(linesOf(form), { mode: form.mode }) });
  }

  /** Answers when the whole list is stored. From then on nothing is lost, even if this process crashes. */
  @Post('erasures')
  async request(@Body({ schema: ERASURE_FORM }) form: ErasureForm, @Res() response: Response): Promise<void> {
    let mistakes = mistakesIn(form);
    if (isConfirmed(form)) {
      const { mode, reference } = form;
      try {
        await this.erasures.requestMany(linesOf(form), { mode, reference, requestedBy: 'administration' });
        response.redirect(303, pageOf(reference));
        return;
      } catch (error) {
        if (error instanceof ErasureError) mistakes = { reference: error.message };
        else if (error instanceof InvalidArgumentError) mistakes = { uids: error.message };
        else throw error;
      }
    }
    response.status(422).render('admin', await this.#page({ form, mistakes }));
  }

  @Post('erasure/:action')
  @Redirect()
  async change(
    @Param('action', new ParseEnumPipe(ACTIONS)) action: keyof typeof ACTIONS,
    @Query('reference', { schema: REFERENCE }) reference: string,
  ): Promise<object> {
    await this.erasures[action](reference);
    return { url: pageOf(reference), statusCode: 303 };
  }

  /** The progress about once a second, until the list is finished or the administrator is logged out. */
  @Sse('erasure/events')
  async events(
    @Query('reference', { schema: REFERENCE }) reference: string,
    @Req() { sessionID }: Request,
  ): Promise<Observable<MessageEvent>> {
    await this.erasures.status(reference); // an unknown reference is a 404 as long as nothing is sent
    return this.erasures.progress(reference).pipe(
      concatMap(async (progress) => ({ progress, isLoggedIn: await this.sessions.has(sessionID) })),
      takeWhile(({ isLoggedIn }) => isLoggedIn),
      map(({ progress }) => ({ data: erasureView(progress) })),
      endWith({ type: 'end', data: '' }),
    );
  }

  @Post('logouts/:id/retry')
  @Redirect('/admin#logouts', 303)
  async retry(@Param('id') id: string, @Req() { session }: Request): Promise<void> {
    session.notice = { text: (await this.outbox.retry(id)) ? 'The app sends the logout again.' : GONE };
  }

  @Post('logouts/:id/discard')
  @Redirect('/admin#logouts', 303)
  async discard(@Param('id') id: string, @Req() { session }: Request): Promise<void> {
    session.notice = {
      text: (await this.outbox.discard(id)) ? 'Discarded. The logout is never sent.' : GONE,
    };
  }

  async #page({ reference, form = EMPTY_FORM, mistakes = {}, dryRun, notice }: Shown): Promise<object> {
    const erasures: ErasureStatus[] = [];
    for await (const status of this.erasures.list()) if (erasures.push(status) === MAX_LISTED) break;
    const shown = reference ?? erasures[0]?.reference;
    const [stats, parked] = await Promise.all([this.outbox.stats(), this.outbox.parked()]);
    return {
      form,
      mistakes,
      dryRun,
      notice,
      others: erasures.filter((other) => other.reference !== shown).map(erasureView),
      erasure: shown === undefined ? undefined : erasureView(await this.erasures.status(shown)),
      stats,
      oldest: stats.oldestPendingMs === undefined ? '–' : duration(stats.oldestPendingMs),
      parked: parked.map((logout) => ({ ...logout, parkedAt: moment(logout.parkedAt) })),
      pathOf: (action?: string) => pageOf(shown ?? '', action),
      pageOf,
    };
  }
}

const GONE = 'Somebody else has already handled this logout.';

/** The reference is in the query, because browsers resolve `.` and `..` in paths. */
function pageOf(reference: string, action?: string): string {
  const path = action === undefined ? '/admin' : `/admin/erasure/${action}`;
  return `${path}?${new URLSearchParams({ reference }).toString()}`;
}
