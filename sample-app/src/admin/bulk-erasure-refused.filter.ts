import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  DebateSpaceErasures,
  ErasureError,
  InvalidArgumentError,
  InvalidUidError,
} from 'nestjs-debate-space';
import { prefersPages } from '../problems/prefers-pages.js';
import { sendProblem } from '../problems/problem.js';
import { bulkErasureForm, BulkErasureRefused, type BulkErasureMistakes } from './bulk-erasure-form.js';
import { bulkErasurePage } from './bulk-erasure-page.js';
import type { UploadedList } from './uploaded-lists.js';

type Refusal = BulkErasureRefused | InvalidArgumentError | InvalidUidError | ErasureError;

/** Brings the form back, and says at each field what is wrong. The library names rows of a list, and never what is in them. */
@Catch(BulkErasureRefused, InvalidArgumentError, InvalidUidError, ErasureError)
export class BulkErasureRefusedFilter implements ExceptionFilter<Refusal> {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  async catch(error: Refusal, host: ArgumentsHost): Promise<void> {
    const request = host.switchToHttp().getRequest<Request & { file?: UploadedList }>();
    const response = host.switchToHttp().getResponse<Response>();
    const mistakes = mistakesOf(error);
    if (prefersPages(request)) {
      const page = await bulkErasurePage(this.erasures, {
        form: bulkErasureForm(request.body, request.file),
        mistakes,
      });
      response.status(422).render('admin/erasures', page);
    } else {
      sendProblem(request, response, { status: 422, detail: Object.values(mistakes).join(' ') });
    }
  }
}

function mistakesOf(error: Refusal): BulkErasureMistakes {
  if (error instanceof BulkErasureRefused) return error.mistakes;
  return error instanceof ErasureError ? { reference: error.message } : { list: error.message };
}
