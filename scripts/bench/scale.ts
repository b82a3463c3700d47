// npm run bench -- scale: so many users erased in one list; and, with --simulate, erasures at the usual limit without a wall
// clock.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import { kill, start, storagePlaces } from './processes.js';
import type { ErasedUsers } from './scale-erasures.js';
import { simulate } from './scale-simulation.js';

const MOST_HEAP_MB = 50;
const SIMULATED = 100_000;

export default async function scale(options: BenchOptions): Promise<void> {
  const { size, engines, isSimulated } = options;
  if (isSimulated) {
    await simulate(Math.min(size, SIMULATED));
    process.exit();
  }
  await users(engines, await storagePlaces(), size);
  process.exit();
}

/** So many users in one list, without a limit. */
async function users(
  engines: readonly EngineName[],
  places: Readonly<Record<EngineName, string>>,
  size: number,
): Promise<void> {
  console.log(`\n${size} users, requested in one list and carried out without a rate limit`);
  for (const engine of engines) {
    const service = await start('./scale-service.ts');
    const args = [engine, places[engine], `scale-users`, service.url, String(size)];
    const execArgv = [...process.execArgv, '--expose-gc', '--max-old-space-size=12000'];
    const child = fork(new URL('./scale-erasures.ts', import.meta.url), args, { execArgv });
    const ended = once(child, 'exit').then(([code]: unknown[]) => {
      throw new Error(`the app on ${engine} ended with ${String(code)}`);
    });
    const [erased] = (await Promise.race([once(child, 'message'), ended])) as [ErasedUsers];
    const { requestedPerSecond, donePerSecond, heapMb } = erased;
    await ended.catch(() => undefined);
    await kill(service.child);
    const verdict = heapMb <= MOST_HEAP_MB ? 'PASS' : 'over';
    const judged = engine === 'memory' ? 'the records themselves' : `${verdict}, ≤ ${MOST_HEAP_MB}`;
    console.log(
      `  ${engine.padEnd(10)} ${Math.round(requestedPerSecond)} users/s requested, ` +
        `${Math.round(donePerSecond)} users/s erased; heap ${heapMb.toFixed(1)} MB (${judged})`,
    );
  }
}
