import { rm } from 'node:fs/promises';
import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import { lastValueFrom, of, type Observable } from 'rxjs';
import { assertCsrfToken } from '../session/csrf.guard.js';
import type { UploadedList } from './uploaded-lists.js';

/** Behind multer, which has read the form: checks its token, and removes the file as soon as the handler is done. */
@Injectable()
export class UploadFormInterceptor implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<Request & { file?: UploadedList }>();
    try {
      assertCsrfToken(request);
      return of(await lastValueFrom(next.handle()));
    } finally {
      if (request.file) await rm(request.file.path, { force: true });
    }
  }
}
