import cookie from '@fastify/cookie';
import session from '@fastify/session';
import { Body, Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { SessionEndModule, type SessionEnd } from 'nestjs-session-end';

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
    await request.session.destroy(); // and the end is in the audit log
  }
}

export const auditLog: SessionEnd[] = [];

@Module({
  imports: [SessionEndModule.forRoot({ onSessionEnd: (end) => void auditLog.push(end) })],
  controllers: [AccountController],
})
class AppModule {}

export const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter());
await app.register(cookie);
await app.register(session, { secret: process.env.SESSION_SECRET ?? '', cookie: { secure: false } }); // no HTTPS here
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
