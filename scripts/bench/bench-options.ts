import type { EngineName } from '../test-crash/engines.js';

/** What the command line chooses; each benchmark takes what it has. */
export interface BenchOptions {
  readonly pairs: number;
  readonly rounds: number;
  readonly pending: number;
  readonly backlog: number;
  readonly guard: boolean;
  readonly size: number;
  readonly engines: readonly EngineName[];
}
