import { NestFactory } from '@nestjs/core';
import { DebateSpaceOutbox } from 'nestjs-debate-space';
import { AppModule } from './app.module.js';

/** The handler of a scheduled function, with the options of the app and `worker: false`. */
export async function handler(): Promise<{ drained: boolean }> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  try {
    const { drained, pending, parked } = await app.get(DebateSpaceOutbox).drain({ timeoutMs: 50_000 });
    console.log({ drained, pending, parked });
    return { drained };
  } finally {
    await app.close();
  }
}
