import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { ErasureError, InvalidArgumentError, InvalidUidError } from 'nestjs-debate-space';
import { answerRefusal, type BulkErasureRefusal } from './answer-refusal.js';
import { bulkErasureForm, BulkErasureRefused } from './bulk-erasure-form.js';
import { lookedForOrphans } from './orphans-page.js';
import { Orphans } from './orphans.js';

/** Brings the form back, below the users who have no account now. */
@Catch(BulkErasureRefused, InvalidArgumentError, InvalidUidError, ErasureError)
export class OrphansRefusedFilter implements ExceptionFilter<BulkErasureRefusal> {
  constructor(private readonly orphans: Orphans) {}

  async catch(error: BulkErasureRefusal, host: ArgumentsHost): Promise<void> {
    await answerRefusal(error, host, 'admin/orphans', ({ body }, mistakes) =>
      lookedForOrphans(this.orphans, { form: bulkErasureForm(body), mistakes }),
    );
  }
}
