import { jest } from '@jest/globals';
import { performance } from 'node:perf_hooks';

/** All clocks of a test: that of the storage, and the two of the machine. */
export class Clocks {
  storage = 1.8e12;
  #machine = 0;
  #date = 1.8e12;

  /** To be undone by `jest.restoreAllMocks()`. */
  constructor() {
    jest.spyOn(performance, 'now').mockImplementation(() => this.#machine);
    jest.spyOn(Date, 'now').mockImplementation(() => this.#date);
  }

  /** Time passes. */
  advance(ms: number): void {
    this.storage += ms;
    this.#machine += ms;
    this.#date += ms;
  }
}
