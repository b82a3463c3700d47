import { cookieStacks } from './cookie-endings.js';
import { cellsOf, type EndingCell } from './endings.js';
import { expressStacks } from './express-endings.js';
import { fastifyStacks } from './fastify-endings.js';

/** Every row on every stack that has it. */
export const endingCells: readonly EndingCell[] = [
  ...expressStacks.flatMap(cellsOf),
  ...fastifyStacks.flatMap(cellsOf),
  ...cookieStacks.flatMap(cellsOf),
];
