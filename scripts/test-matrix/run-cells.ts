// Plays every row on the NestJS that is installed here, some hosts at a time, and sends each result to the parent process. In
// plain Node: a host has no test runner around it. Argument: the version of NestJS.
import { judgeAll } from '#support/endings/judge.js';
import { endingCells } from '#support/endings/stacks.js';

const LANES = 6;

/** A row on a stack, and what is wrong with it. */
export interface Cell {
  readonly stack: string;
  readonly name: string;
  readonly wrong: readonly string[];
}

async function main(): Promise<void> {
  const [nest = '12'] = process.argv.slice(2);
  const errors: string[] = [];
  const note = (error: unknown): void => {
    errors.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  };
  process.on('uncaughtException', note).on('unhandledRejection', note);
  // `npm run test:rows` checks the other promises, which do not depend on versions.
  const only = () => ['reported', 'stored'] as const;
  const options = { nest, only, uncaught: () => errors.splice(0) };
  await judgeAll(endingCells, LANES, options, async ({ stack, ending: { name } }, { wrong }) => {
    const cell: Cell = { stack, name, wrong };
    await new Promise((sent) => process.send?.(cell, undefined, undefined, sent));
  });
  process.exit(); // whatever a cell with an error has left open
}

void main();
