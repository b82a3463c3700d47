import type { Output } from './output.js';
import type { Surroundings } from './surroundings.js';

/** What the commands are run in. */
export interface Shell extends Surroundings {
  readonly output: Output;
}
