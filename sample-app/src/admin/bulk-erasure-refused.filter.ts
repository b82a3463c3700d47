import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import {
  DebateSpaceErasures,
  ErasureError,
  InvalidArgumentError,
  InvalidUidError,
} from 'nestjs-debate-space';
import { answerRefusal, type BulkErasureRefusal } from './answer-refusal.js';
import { bulkErasureForm, BulkErasureRefused } from './bulk-erasure-form.js';
import { bulkErasurePage } from './bulk-erasure-page.js';

/** Brings the form back, filled in as it was, with the name of its file. */
@Catch(BulkErasureRefused, InvalidArgumentError, InvalidUidError, ErasureError)
export class BulkErasureRefusedFilter implements ExceptionFilter<BulkErasureRefusal> {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  async catch(error: BulkErasureRefusal, host: ArgumentsHost): Promise<void> {
    await answerRefusal(error, host, 'admin/erasures', ({ body, file }, mistakes) =>
      bulkErasurePage(this.erasures, { form: bulkErasureForm(body, file), mistakes }),
    );
  }
}
