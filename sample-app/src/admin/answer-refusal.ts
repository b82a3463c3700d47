import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErasureError, type InvalidArgumentError, type InvalidUidError } from 'nestjs-debate-space';
import { prefersPages } from '../problems/prefers-pages.js';
import { sendProblem } from '../problems/problem.js';
import { BulkErasureRefused, type BulkErasureMistakes } from './bulk-erasure-form.js';
import type { UploadedList } from './uploaded-lists.js';

/** Why many users are not erased. The library names rows of a list, and never what is in them. */
export type BulkErasureRefusal = BulkErasureRefused | InvalidArgumentError | InvalidUidError | ErasureError;

/** With the file of the form, if it has one. */
export type BulkErasureRequest = Request & { readonly file?: UploadedList };

/** Brings the form back, and says at each field what is wrong; programs get a problem. */
export async function answerRefusal(
  error: BulkErasureRefusal,
  host: ArgumentsHost,
  view: string,
  page: (request: BulkErasureRequest, mistakes: BulkErasureMistakes) => Promise<object>,
): Promise<void> {
  const request = host.switchToHttp().getRequest<BulkErasureRequest>();
  const response = host.switchToHttp().getResponse<Response>();
  const mistakes = mistakesOf(error);
  if (prefersPages(request)) response.status(422).render(view, await page(request, mistakes));
  else sendProblem(request, response, { status: 422, detail: Object.values(mistakes).join(' ') });
}

function mistakesOf(error: BulkErasureRefusal): BulkErasureMistakes {
  if (error instanceof BulkErasureRefused) return error.mistakes;
  return error instanceof ErasureError ? { reference: error.message } : { list: error.message };
}
