import { Body, Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { SessionEndModule, type SessionEnd } from 'nestjs-session-end';

interface SessionRequest {
  session: { user?: { uid: string }; destroy(done: () => void): void };
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
  logout(@Req() request: SessionRequest): Promise<void> {
    return new Promise((resolve) => {
      request.session.destroy(resolve); // and the end is in the audit log
    });
  }
}

export const auditLog: SessionEnd[] = [];

@Module({
  imports: [SessionEndModule.forRoot({ onSessionEnd: (end) => void auditLog.push(end) })],
  controllers: [AccountController],
})
class AppModule {}

export const app = await NestFactory.create(AppModule);
app.use(session({ secret: process.env.SESSION_SECRET ?? '', resave: false, saveUninitialized: false }));
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
