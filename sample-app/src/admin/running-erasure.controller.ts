import { Readable } from 'node:stream';
import {
  Controller,
  Get,
  Param,
  Post,
  Redirect,
  Render,
  Sse,
  StreamableFile,
  UseGuards,
  type MessageEvent,
} from '@nestjs/common';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { endWith, map, type Observable } from 'rxjs';
import { erasureView, type ErasureView } from '../erasure/erasure-view.js';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { erasurePath } from './bulk-erasure-page.js';

interface RunningErasurePage {
  readonly path: string;
  readonly erasure: ErasureView;
}

/** One erasure of many users, while it goes on and afterwards. */
@Controller('admin/erasures/:reference')
@UseGuards(AuthenticatedGuard, AdminGuard)
export class RunningErasureController {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  @Get()
  @Render('admin/erasure')
  async page(@Param('reference') reference: string): Promise<RunningErasurePage> {
    return { path: erasurePath(reference), erasure: erasureView(await this.erasures.status(reference)) };
  }

  /** The same, about once a second; `end` says that nothing more will come. */
  @Sse('events')
  events(@Param('reference') reference: string): Observable<MessageEvent> {
    return this.erasures.progress(reference).pipe(
      map((progress) => ({ data: erasureView(progress) })),
      endWith({ type: 'end', data: '' }),
    );
  }

  @Post('pause')
  @Redirect()
  async pause(@Param('reference') reference: string): Promise<object> {
    await this.erasures.pause(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  @Post('resume')
  @Redirect()
  async resume(@Param('reference') reference: string): Promise<object> {
    await this.erasures.resume(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  @Post('cancel')
  @Redirect()
  async cancel(@Param('reference') reference: string): Promise<object> {
    await this.erasures.cancel(reference);
    return { url: erasurePath(reference), statusCode: 303 };
  }

  /** One line of JSON for each user who is done. However many there are, they are never all in memory. */
  @Get('receipts')
  async receipts(@Param('reference') reference: string): Promise<StreamableFile> {
    await this.erasures.status(reference); // or 404, as long as nothing is sent
    return new StreamableFile(Readable.from(lines(this.erasures.receipts(reference))), {
      type: 'application/x-ndjson',
      disposition: 'attachment; filename="receipts.ndjson"',
    });
  }
}

async function* lines(receipts: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const receipt of receipts) yield `${JSON.stringify(receipt)}\n`;
}
