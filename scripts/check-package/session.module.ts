// What an app has before it adopts the plugin: sessions, a login and a logout. Beside them, the subpaths of the plugin.
import {
  Body,
  Controller,
  Module,
  Post,
  Req,
  type MiddlewareConsumer,
  type NestModule,
} from '@nestjs/common';
import session from 'express-session';
import { mysqlStorage } from 'nestjs-debate-space/mysql';
import { observeDebateSpace } from 'nestjs-debate-space/opentelemetry';
import { postgresStorage } from 'nestjs-debate-space/postgres';

export const subpaths = [mysqlStorage, observeDebateSpace, postgresStorage];

interface SessionRequest {
  session: { user?: { id: string }; destroy(callback: () => void): void };
}

@Controller()
export class SessionController {
  @Post('login')
  login(@Req() request: SessionRequest, @Body() credentials: { username: string }): string {
    request.session.user = { id: credentials.username };
    return 'hello';
  }

  @Post('logout')
  async logout(@Req() request: SessionRequest): Promise<string> {
    await new Promise<void>((resolve) => {
      request.session.destroy(resolve);
    });
    return 'bye';
  }
}

@Module({ controllers: [SessionController] })
export class SessionModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const sessions = session({ secret: 'only for this check', resave: false, saveUninitialized: false });
    consumer.apply(sessions).forRoutes(SessionController);
  }
}
