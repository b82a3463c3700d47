import { Controller, HttpCode, Param, Post, Req, Sse, UseGuards, type MessageEvent } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { endWith, map, type Observable } from 'rxjs';
import { DebateSpaceErasures, type ErasureDryRun, type ErasureStatus } from 'nestjs-debate-space';
import { uidsOfCsv } from './uids-of-file.js';

@Controller('admin/erasures/:reference')
@UseGuards(AuthGuard('jwt')) // and your guard for administrators
export class BulkErasureController {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  @Post('dry-run')
  @HttpCode(200)
  count(@Req() list: Request): Promise<ErasureDryRun> {
    return this.erasures.dryRun(uidsOfCsv(list), { mode: 'anonymize' });
  }

  @Post()
  @HttpCode(202)
  request(@Param('reference') reference: string, @Req() list: Request): Promise<ErasureStatus> {
    const requestedBy = 'administration';
    return this.erasures.requestMany(uidsOfCsv(list), { mode: 'anonymize', reference, requestedBy });
  }

  @Sse('events')
  async events(@Param('reference') reference: string): Promise<Observable<MessageEvent>> {
    await this.erasures.status(reference); // rejects for an unknown reference, before the stream has begun
    return this.erasures.progress(reference).pipe(
      map((data) => ({ data })),
      endWith({ type: 'end', data: '' }),
    );
  }

  @Post(':action')
  @HttpCode(200)
  steer(@Param('reference') reference: string, @Param('action') action: string): Promise<ErasureStatus> {
    if (action === 'pause') return this.erasures.pause(reference);
    if (action === 'resume') return this.erasures.resume(reference);
    if (action === 'retry') return this.erasures.retry(reference);
    if (action === 'cancel') return this.erasures.cancel(reference);
    return this.erasures.status(reference);
  }
}
