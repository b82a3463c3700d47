import { Controller, Get, HttpCode, Post, Req } from '@nestjs/common';

/** What a browser of a benchmark needs: a trivial route, and a login. */
@Controller()
export class HelloController {
  @Get('hello')
  hello(): string {
    return 'hello';
  }

  @Post('login')
  @HttpCode(200)
  login(@Req() request: { readonly session: { user?: string } }): string {
    request.session.user = 'alice';
    return 'hello alice';
  }
}
