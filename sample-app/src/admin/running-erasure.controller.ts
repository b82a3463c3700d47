import { Readable } from 'node:stream';
import {
  Controller,
  Get,
  Post,
  Query,
  Redirect,
  Render,
  Req,
  Sse,
  StreamableFile,
  UseGuards,
  type MessageEvent,
} from '@nestjs/common';
import type { Request } from 'express';
import { DebateSpaceErasures, type ErasureStatus } from 'nestjs-debate-space';
import { endWith, map, takeUntil, type Observable } from 'rxjs';
import { ErasureTroubles } from '../erasure/erasure-troubles.js';
import { erasureView, type ErasureView } from '../erasure/erasure-view.js';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { Sessions } from '../session/sessions.js';
import { erasurePath } from './erasure-path.js';
import { ReferencePipe } from './reference.pipe.js';

interface RunningErasurePage {
  /** Where a part of this erasure is, such as `events`. */
  readonly path: (part?: string) => string;
  readonly erasure: ErasureView;
}

/** One erasure of many users, while it runs and afterwards. */
@Controller('admin/erasure')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class RunningErasureController {
  constructor(
    private readonly erasures: DebateSpaceErasures,
    private readonly sessions: Sessions,
    private readonly troubles: ErasureTroubles,
  ) {}

  @Get()
  @Render('admin/erasure')
  async page(@Query('reference', ReferencePipe) reference: string): Promise<RunningErasurePage> {
    const erasure = this.#view(await this.erasures.status(reference));
    return { path: (part) => erasurePath(reference, part), erasure };
  }

  /** The same, about once a second until the erasure or the session ends; then `end`. */
  @Sse('events')
  async events(
    @Query('reference', ReferencePipe) reference: string,
    @Req() { sessionID }: Request,
  ): Promise<Observable<MessageEvent>> {
    await this.erasures.status(reference); // an unknown one is a 404: the stream would fail behind its 200
    return this.erasures.progress(reference).pipe(
      map((progress) => ({ data: this.#view(progress) })),
      takeUntil(this.sessions.whenEnded(sessionID)),
      endWith({ type: 'end', data: '' }),
    );
  }

  @Post('pause')
  @Redirect()
  async pause(@Query('reference', ReferencePipe) reference: string): Promise<object> {
    await this.erasures.pause(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  @Post('resume')
  @Redirect()
  async resume(@Query('reference', ReferencePipe) reference: string): Promise<object> {
    await this.erasures.resume(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  @Post('retry')
  @Redirect()
  async retry(@Query('reference', ReferencePipe) reference: string): Promise<object> {
    await this.erasures.retry(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  @Post('cancel')
  @Redirect()
  async cancel(@Query('reference', ReferencePipe) reference: string): Promise<object> {
    await this.erasures.cancel(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  /** One line of JSON for each user who is done. However many there are, they are never all in memory. */
  @Get('receipts')
  async receipts(@Query('reference', ReferencePipe) reference: string): Promise<StreamableFile> {
    await this.erasures.status(reference); // or 404, as long as nothing is sent
    return new StreamableFile(Readable.from(lines(this.erasures.receipts(reference))), {
      type: 'application/x-ndjson',
      disposition: 'attachment; filename="receipts.ndjson"',
    });
  }

  #view(status: ErasureStatus): ErasureView {
    return erasureView(status, this.troubles.of(status.reference));
  }
}

async function* lines(receipts: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const receipt of receipts) yield `${JSON.stringify(receipt)}\n`;
}
