import { describe } from '@jest/globals';
import { memoryOutbox, type OutboxFactory } from 'nestjs-debate-space';

/** An engine that the contract is run over. */
export interface OutboxEngine {
  readonly name: string;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts what the engine needs, once for all tests. */
  start(): Promise<EnginePlaces>;
}

export interface EnginePlaces {
  /** An empty place of its own. What is opened by the same factory later, or twice, is the same place. */
  place(): OutboxFactory;
  stop(): Promise<void>;
}

export const outboxEngines: readonly OutboxEngine[] = [
  {
    name: 'memory',
    describe,
    start: () => Promise.resolve({ place: memoryOutbox, stop: () => Promise.resolve() }),
  },
];
