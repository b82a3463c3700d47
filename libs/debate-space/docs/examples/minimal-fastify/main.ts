import cookie from '@fastify/cookie';
import session from '@fastify/session';
import { Body, Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';

interface SessionRequest {
  session: { user?: { uid: string }; destroy(): Promise<void> };
}

@Controller()
class AccountController {
  @Post('login')
  login(@Req() request: SessionRequest, @Body() { uid }: { uid: string }): void {
    request.session.user = { uid }; // check a password first
  }

  @Get('whoami')
  whoami(@Req() request: SessionRequest): string {
    return request.session.user?.uid ?? 'nobody';
  }

  @Post('logout')
  async logout(@Req() request: SessionRequest): Promise<void> {
    await request.session.destroy(); // the plugin logs the user out of the debate space
  }
}

const { DEBATE_SPACE_API_KEY: apiKey = '', DEBATE_SPACE_SECRET_KEY: secretKey = '' } = process.env;
@Module({
  imports: [DebateSpaceModule.forRoot({ apiKey, secretKey, applicationName: 'demo' })], // and DEBATE_SPACE_AUTH_URL
  controllers: [AccountController],
})
class AppModule {}

export const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter());
await app.register(cookie);
await app.register(session, { secret: process.env.SESSION_SECRET ?? '', cookie: { secure: false } }); // no HTTPS here
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
