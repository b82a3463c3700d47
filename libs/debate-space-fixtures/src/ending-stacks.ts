import { cookieStacks } from './cookie-endings.js';
import { cellsOf, type EndingCell } from './endings.js';
import { expressStacks } from './express-stacks.js';
import { fastifyStacks } from './fastify-stacks.js';
import { socketStacks } from './socket-stacks.js';

/** Every row on every stack that has it. */
export const endingCells: readonly EndingCell[] = [
  ...expressStacks.flatMap(cellsOf),
  ...fastifyStacks.flatMap(cellsOf),
  ...cookieStacks.flatMap(cellsOf),
  ...socketStacks.flatMap(cellsOf),
];
