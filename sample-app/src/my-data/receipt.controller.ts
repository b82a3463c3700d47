import {
  Controller,
  Get,
  NotFoundException,
  Param,
  ParseUUIDPipe,
  Render,
  Sse,
  type MessageEvent,
} from '@nestjs/common';
import {
  DebateSpaceErasures,
  type ErasureMode,
  type ErasureReceipt,
  type ErasureStatus,
} from 'nestjs-debate-space';
import { concatMap, endWith, map, type Observable } from 'rxjs';
import { Access } from '../auth/access.guard.js';
import { erasureView, moment, type ErasureView } from '../erasure-view.js';

/** References of users are random. References that administrators choose have no receipt page. */
const RANDOM = new ParseUUIDPipe({
  version: '4',
  exceptionFactory: () => new NotFoundException('This receipt does not exist, or its address is incomplete.'),
});

/** What became of the erasure of one user. It needs no login, because the user is logged out, and shows no name. */
@Controller('receipts/:reference')
@Access('everybody')
export class ReceiptController {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  @Get()
  @Render('receipt')
  async page(@Param('reference', RANDOM) reference: string): Promise<object> {
    return { erasure: await this.#view(await this.erasures.status(reference)) };
  }

  /** The same until the erasure is finished. */
  @Sse('events')
  events(@Param('reference', RANDOM) reference: string): Observable<MessageEvent> {
    return this.erasures.progress(reference).pipe(
      concatMap((status) => this.#view(status)),
      map((data) => ({ data })),
      endWith({ type: 'end', data: '' }),
    );
  }

  async #view(status: ErasureStatus): Promise<ErasureView> {
    const view = erasureView(status);
    for await (const receipt of this.erasures.receipts(status.reference))
      return { ...view, sentence: outcome(status.mode, receipt) };
    return view;
  }
}

function outcome(mode: ErasureMode, { outcome, doneAt, reason }: ErasureReceipt): string {
  const erased = mode === 'anonymize' ? 'anonymized' : 'deleted';
  if (outcome === 'erased') return `Your data was ${erased} on ${moment(doneAt)}.`;
  if (outcome === 'not-found') return `The debate space had no data about you on ${moment(doneAt)}.`;
  if (outcome === 'vetoed') return `Your data was not ${erased}: ${reason ?? 'the app does not allow it'}.`;
  return 'Your request was canceled. Your data may have been erased before.';
}
