import { applyDecorators, UseInterceptors } from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { ReadsFormItself } from '../session/csrf.guard.js';
import { UploadFormInterceptor } from './upload-form.interceptor.js';

/** For handlers of a form with a file in it. @param field the name of the file's field */
export function UploadForm(field: string): MethodDecorator {
  return applyDecorators(
    ReadsFormItself(true),
    UseInterceptors(FileInterceptor(field), UploadFormInterceptor),
  );
}
