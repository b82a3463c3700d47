// The process of start.spec.ts: a host starts, logs a user out, and prints what came of it.
import 'reflect-metadata';
import { ConsoleLogger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as pause } from 'node:timers/promises';
import { DebateSpaceEvents, DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';

export interface StartReport {
  /** Why the logout was not delivered, of each attempt. */
  readonly causes: readonly string[];
  readonly warnings: readonly string[];
  /** Whether the installed undici has made itself the dispatcher of the host's `fetch`. */
  readonly fetchIsReplaced: boolean;
  /** Of a page that the host does not have, in the end. */
  readonly status: number;
}

const causes: string[] = [];
const warnings: string[] = [];
class Logger extends ConsoleLogger {
  override warn(message: string): void {
    warnings.push(message);
  }
}

const authUrl = 'http://127.0.0.1:9';
const options = { apiKey: 'an-api-key', secretKey: 's'.repeat(32), applicationName: 'demo', authUrl };
@Module({ imports: [DebateSpaceModule.forRoot(options)] })
class Host {}

const app = await NestFactory.create(Host, { logger: new Logger({ logLevels: ['warn'] }) });
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  if (event.type === 'logout-retrying') causes.push(event.cause);
});
await app.listen(0, '127.0.0.1');
await app.get(DebateSpaceService).logoutUser('alice');
await pause(2_000);
const fetchIsReplaced = await import('undici').then(
  ({ Agent, getGlobalDispatcher }) => getGlobalDispatcher() instanceof Agent,
  () => false,
);
const { status } = await fetch(await app.getUrl());
process.stdout.write(JSON.stringify({ causes, warnings, fetchIsReplaced, status } satisfies StartReport));
process.exit();
