import {
  Controller,
  Get,
  NotFoundException,
  Param,
  ParseUUIDPipe,
  Render,
  Req,
  Sse,
  type MessageEvent,
} from '@nestjs/common';
import type { Request } from 'express';
import { DebateSpaceErasures, type ErasureStatus } from 'nestjs-debate-space';
import { concatMap, endWith, map, type Observable } from 'rxjs';
import { takeNotice } from '../session/notice.js';
import { ErasureTroubles } from './erasure-troubles.js';
import { receiptView, type ReceiptView } from './receipt-view.js';

/** References of users are random, so that nobody guesses one. Those of administrators are not, and not shown here. */
const RANDOM = new ParseUUIDPipe({
  version: '4',
  exceptionFactory: () => new NotFoundException('This receipt does not exist, or its address is incomplete.'),
});

/** Shows without a login what became of an erasure: the user who requested it is logged out. */
@Controller('receipts/:reference')
export class ReceiptController {
  constructor(
    private readonly erasures: DebateSpaceErasures,
    private readonly troubles: ErasureTroubles,
  ) {}

  @Get()
  @Render('receipt')
  async receipt(
    @Param('reference', RANDOM) reference: string,
    @Req() request: Request,
  ): Promise<{ erasure: ReceiptView; notice: string | undefined }> {
    const erasure = await this.#view(await this.erasures.status(reference));
    return { erasure, notice: takeNotice(request) };
  }

  /** The same while the erasure runs; `end` says that nothing more will come. */
  @Sse('events')
  events(@Param('reference', RANDOM) reference: string): Observable<MessageEvent> {
    return this.erasures.progress(reference).pipe(
      concatMap((status) => this.#view(status)),
      map((data) => ({ data })),
      endWith({ type: 'end', data: '' }),
    );
  }

  async #view(status: ErasureStatus): Promise<ReceiptView> {
    const { reference } = status;
    for await (const receipt of this.erasures.receipts(reference)) return receiptView(status, receipt);
    return receiptView(status, undefined, this.troubles.of(reference));
  }
}
