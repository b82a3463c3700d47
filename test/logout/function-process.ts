// A serverless function: a process that has nothing but Postgres, and ends as soon as its last answer has left.
import 'reflect-metadata';
import { configure as serverlessExpress } from '@codegenie/serverless-express';
import { Body, Controller, Get, HttpCode, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import createPostgresStore from 'connect-pg-simple';
import type { Request } from 'express';
import session from 'express-session';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { promisify } from 'node:util';
import { Pool } from 'pg';
import type { LambdaHandler } from '#support/hosts/lambda-fetch.js';

export interface FunctionSettings {
  /** Without the storage, which is the database. */
  readonly debateSpace: DebateSpaceModuleOptions;
  readonly databaseUrl: string;
}

export interface Invocation {
  readonly event: object;
  readonly isLast: boolean;
}

type SessionRequest = Request & { session: { user?: { uid: string } | undefined } };

@Controller()
class AccountController {
  @Post('login')
  @HttpCode(200)
  login(@Req() { session: current }: SessionRequest, @Body() { uid }: { uid: string }): void {
    current.user = { uid };
  }

  @Get('whoami')
  whoami(@Req() { session: current }: SessionRequest): string {
    return current.user?.uid ?? 'nobody';
  }

  @Post('logout')
  @HttpCode(200)
  async logout(@Req() { session: current }: SessionRequest): Promise<void> {
    await promisify(current.destroy.bind(current))();
  }
}

const { debateSpace, databaseUrl } = JSON.parse(process.argv[2] ?? '') as FunctionSettings;
const pool = new Pool({ connectionString: databaseUrl, max: 1 });
const storage = postgresStorage({ pool });

@Module({
  imports: [DebateSpaceModule.forRoot({ ...debateSpace, storage })],
  controllers: [AccountController],
})
class FunctionModule {}

const app = await NestFactory.create(FunctionModule, { logger: false });
const PostgresStore = createPostgresStore(session);
const settings = { secret: 'only for tests', resave: false, saveUninitialized: false };
app.use(session({ ...settings, store: new PostgresStore({ pool, pruneSessionInterval: false }) }));
await app.init();
const server = { app: app.getHttpAdapter().getInstance() as never };
const handler = serverlessExpress(server) as unknown as LambdaHandler;

async function answer({ event, isLast }: Invocation): Promise<void> {
  const response = await handler(event, {}, () => undefined);
  process.send?.(response, () => {
    if (isLast) process.kill(process.pid, 'SIGKILL');
  });
}
process.on('message', (invocation) => void answer(invocation as Invocation));
process.on('disconnect', () => process.exit()); // without its parent
