// Plays every row on the NestJS that is installed here, some hosts at a time, and sends each result to the parent process. In
// plain Node: a host has no test runner around it. Arguments: the storage, where its server is, and the version of NestJS.
import { judge } from '#support/endings/judge.js';
import { endingCells } from '#support/endings/stacks.js';
import { connectStorage } from './storages.js';

const LANES = 6;

/** A row on a stack, and what is wrong with it. */
export interface Cell {
  readonly stack: string;
  readonly name: string;
  readonly wrong: readonly string[];
}

async function main(): Promise<void> {
  const [name = 'memory', where = '', nest = '12'] = process.argv.slice(2);
  const errors: string[] = [];
  const note = (error: unknown): void => {
    errors.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  };
  process.on('uncaughtException', note).on('unhandledRejection', note);
  const emptyStorage = await connectStorage(name, where);
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let n = next++; n < endingCells.length; n = next++) {
      const played = endingCells[n];
      if (!played) return;
      // `npm run test:rows` checks the other promises, which do not depend on versions.
      const only = ['told', 'stored'] as const;
      const options = { nest, storage: await emptyStorage(), only, uncaught: () => errors.splice(0) };
      const { wrong } = await judge(played, n, options);
      const cell: Cell = { stack: played.stack, name: played.ending.name, wrong };
      await new Promise((sent) => process.send?.(cell, undefined, undefined, sent));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  process.exit(); // whatever a cell with an error has left open
}

void main();
