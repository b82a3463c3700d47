// Plays every cell of the table on the NestJS that is installed here, one after another, and sends each result to the
// parent process. In plain Node: a host has no test runner around it. Arguments: the storage, and where its server is.
import { endingCells } from 'debate-space-fixtures/ending-stacks.js';
import type { EndingCell, Observed } from 'debate-space-fixtures/endings.js';
import { startService } from 'debate-space-fixtures/service.js';
import { connectStorage, type StorageOptions } from './storages.js';

const CELL_TIMEOUT_MS = 60_000; // an end that is reported by its lease only takes half of it

async function main(): Promise<void> {
  const [storage = 'memory', where = ''] = process.argv.slice(2);
  const emptyStorage = await connectStorage(storage, where);
  for (const { observe, ...cell } of endingCells) {
    const result = await undisturbed(() => withService(observe, emptyStorage())).catch((error: unknown) => ({
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }));
    await new Promise((sent) => process.send?.({ ...cell, ...result }, undefined, undefined, sent));
  }
  process.exit(); // whatever a cell with an error has left open
}

/** With a service of its own, so that what comes late does not count for the next cell. */
async function withService(observe: EndingCell['observe'], storage: StorageOptions): Promise<Observed> {
  const service = await startService();
  try {
    return await observe(service, storage);
  } finally {
    await service.stop();
  }
}

/** Rejects when the work takes too long, and for an error that nobody caught: a host would be down by that. */
function undisturbed<Value>(work: () => Promise<Value>): Promise<Value> {
  let stop = (): void => undefined;
  return new Promise<Value>((resolve, reject) => {
    const tooLong = setTimeout(reject, CELL_TIMEOUT_MS, new Error(`not over after ${CELL_TIMEOUT_MS} ms`));
    process.on('uncaughtException', reject).on('unhandledRejection', reject);
    stop = () => {
      clearTimeout(tooLong);
      process.off('uncaughtException', reject).off('unhandledRejection', reject);
    };
    work().then(resolve, reject);
  }).finally(() => {
    stop();
  });
}

void main();
