import {
  Body,
  Controller,
  Get,
  HttpCode,
  Post,
  Redirect,
  Render,
  UploadedFile,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { AdminGuard } from '../login/admin.guard.js';
import { AuthenticatedGuard } from '../login/authenticated.guard.js';
import { bulkErasureForm, confirmed, given } from './bulk-erasure-form.js';
import { bulkErasurePage, type BulkErasurePage } from './bulk-erasure-page.js';
import { BulkErasureRefusedFilter } from './bulk-erasure-refused.filter.js';
import { erasurePath } from './erasure-path.js';
import { UploadForm } from './upload-form.decorator.js';
import type { UploadedList } from './uploaded-lists.js';
import { uploadedUids } from './uploaded-uids.js';

/** Anonymizes or deletes all users of a file. */
@Controller('admin/erasures')
@UseGuards(AuthenticatedGuard, AdminGuard)
@UseFilters(BulkErasureRefusedFilter)
export class BulkErasureController {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  @Get()
  @Render('admin/erasures')
  overview(): Promise<BulkErasurePage> {
    return bulkErasurePage(this.erasures);
  }

  /** Counts what the same form would do, and does nothing. */
  @Post('dry-run')
  @HttpCode(200)
  @UploadForm('list')
  @Render('admin/erasures')
  async dryRun(
    @UploadedFile() upload: UploadedList | undefined,
    @Body() body: unknown,
  ): Promise<BulkErasurePage> {
    const form = bulkErasureForm(body);
    const uids = uploadedUids(given(upload), form.column);
    const dryRun = await this.erasures.dryRun(uids, { mode: form.mode });
    return bulkErasurePage(this.erasures, { form, dryRun });
  }

  /** Answers when every user of the list is noted: from then on nothing is lost, whatever happens to this process. */
  @Post()
  @UploadForm('list')
  @Redirect()
  async request(
    @UploadedFile() upload: UploadedList | undefined,
    @Body() body: unknown,
  ): Promise<{ url: string; statusCode: number }> {
    const form = confirmed(bulkErasureForm(body));
    const { mode, reference, column } = form;
    await this.erasures.requestMany(uploadedUids(given(upload), column), {
      mode,
      reference,
      requestedBy: 'administration',
    });
    return { url: erasurePath(reference), statusCode: 303 };
  }
}
