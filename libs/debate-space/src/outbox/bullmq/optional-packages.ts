import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { OutboxError } from '../../errors.js';

/** Both are optional peers: a host with another outbox never installs them. */
export async function loadBullmq(): Promise<{ readonly Queue: typeof Queue }> {
  return installed(import('bullmq'));
}

export async function loadIoredis(): Promise<{ readonly Redis: typeof Redis }> {
  return installed(import('ioredis'));
}

async function installed<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch {
    throw new OutboxError(
      'bullmqOutbox needs the packages bullmq and ioredis; run: npm install bullmq ioredis',
    );
  }
}
