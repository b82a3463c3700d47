// npm run bench -- users: what memory grows by, and how many users a second, when all users are listed,
// searched for orphans, and compared with a list of as many uids, which a dry run keeps in memory. The service and each reader are processes of their own.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { BenchOptions } from './bench-options.js';
import type { Growth, Reading } from './users-reader.js';

const service = new URL('./users-service.ts', import.meta.url);
const reader = new URL('./users-reader.ts', import.meta.url);
const kinds: readonly { readonly kind: Reading; readonly name: string; readonly maxHeapMb: number }[] = [
  { kind: 'list', name: 'listed by users()', maxHeapMb: 30 },
  { kind: 'orphans', name: 'orphans(), each fifth is one', maxHeapMb: 30 },
  { kind: 'dry-run', name: 'a dry run of as many uids', maxHeapMb: 100 },
];

export default async function users({ users: count }: BenchOptions): Promise<void> {
  console.log(
    `${count} users, 100 on a page; heap after garbage collection every 10000 users, less that before`,
  );
  const server = fork(service, [String(count)]);
  try {
    const [{ url }] = (await once(server, 'message')) as [{ readonly url: string }];
    for (const { kind, name, maxHeapMb } of kinds) {
      const { heapMb, buffersMb, perSecond } = await read(kind, url, count);
      const verdict = heapMb < maxHeapMb ? 'PASS' : 'over';
      console.log(
        `  ${name.padEnd(36)} heap ${heapMb.toFixed(1).padStart(5)} MB (${verdict}, < ${maxHeapMb}), ` +
          `buffers ${buffersMb.toFixed(1).padStart(5)} MB; ${Math.round(perSecond)} users/s`,
      );
    }
  } finally {
    server.kill();
  }
}

async function read(kind: Reading, url: string, count: number): Promise<Growth> {
  const child = fork(reader, [kind, url, String(count)], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  const ended = once(child, 'exit').then(([code]: unknown[]) => {
    throw new Error(`the reader “${kind}” ended with ${String(code)}`);
  });
  const [measured] = (await Promise.race([once(child, 'message'), ended])) as [Growth];
  await ended.catch(() => undefined);
  return measured;
}
