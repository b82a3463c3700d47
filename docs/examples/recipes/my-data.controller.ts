import { randomUUID } from 'node:crypto';
import {
  Controller,
  Get,
  Injectable,
  NotFoundException,
  Param,
  ParseUUIDPipe,
  Post,
  Req,
  Res,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  DebateSpaceErasures,
  DebateSpaceService,
  ErasureError,
  type ErasureMode,
  type ErasureReceipt,
  type ErasureStatus,
} from 'nestjs-debate-space';

/** As passport leaves it. */
type AccountRequest = Request & {
  user: { uid: string };
  isAuthenticated(): boolean;
  logout(done: (error?: Error) => void): void;
};

@Injectable()
export class LoggedIn implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<AccountRequest>().isAuthenticated();
  }
}

@Controller('me')
@UseGuards(LoggedIn) // and your CSRF guard
export class MyDataController {
  constructor(
    private readonly debateSpace: DebateSpaceService,
    private readonly erasures: DebateSpaceErasures,
  ) {}

  @Get('data')
  async download(@Req() { user }: AccountRequest, @Res() response: Response): Promise<void> {
    const record = await this.debateSpace.findUser(user.uid);
    if (record === undefined) throw new NotFoundException('The debate space has no data about you.');
    response.attachment('my-data.json').send(JSON.stringify(record, undefined, 2));
  }

  @Post('anonymize')
  async anonymize(@Req() request: AccountRequest, @Res() response: Response): Promise<void> {
    await this.#erase('anonymize', request, response);
  }

  @Post('delete')
  async delete(@Req() request: AccountRequest, @Res() response: Response): Promise<void> {
    await this.#erase('delete', request, response);
  }

  async #erase(mode: ErasureMode, request: AccountRequest, response: Response): Promise<void> {
    const reference = randomUUID(); // cannot be guessed: it is the address of the receipt
    const { uid } = request.user;
    // A StorageError here: it is unknown whether the request was stored. Have your filter say so, with error.reference.
    await this.erasures.request({ uid, mode, reference, requestedBy: 'the data subject, in the app' });
    // Here: erase the user's own data, and end the sessions in other browsers.
    await new Promise<void>((resolve, reject) => {
      request.logout((error) => {
        if (error) reject(error as Error);
        else resolve();
      });
    });
    response.redirect(303, `/receipts/${reference}`);
  }
}

/** Without a login: the user who made the request is logged out by now. */
@Controller('receipts')
export class ReceiptController {
  constructor(private readonly erasures: DebateSpaceErasures) {}

  @Get(':reference')
  async receipt(
    @Param('reference', new ParseUUIDPipe({ version: '4' })) reference: string,
  ): Promise<{ status: ErasureStatus; receipt?: ErasureReceipt }> {
    try {
      const status = await this.erasures.status(reference);
      for await (const receipt of this.erasures.receipts(reference)) return { status, receipt };
      return { status }; // not done yet
    } catch (error) {
      if (error instanceof ErasureError) throw new NotFoundException();
      throw error;
    }
  }
}
