import { Body, Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';

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
      request.session.destroy(resolve); // the plugin logs the user out of the debate space
    });
  }
}

const { DEBATE_SPACE_API_KEY: apiKey = '', DEBATE_SPACE_SECRET_KEY: secretKey = '' } = process.env;
@Module({
  imports: [DebateSpaceModule.forRoot({ apiKey, secretKey, applicationName: 'demo' })], // and DEBATE_SPACE_AUTH_URL
  controllers: [AccountController],
})
class AppModule {}

export const app = await NestFactory.create(AppModule);
app.use(session({ secret: process.env.SESSION_SECRET ?? '', resave: false, saveUninitialized: false }));
await app.listen(process.env.PORT ?? 3000, '127.0.0.1');
