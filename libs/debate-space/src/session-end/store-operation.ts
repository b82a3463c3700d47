import type { StoreOutcome } from './store-call.js';
import type { EndingCall } from './verdict.js';

/** One call of a store's method, from before it starts until the store has said how it ended. */
export class StoreOperation implements EndingCall {
  #outcome: StoreOutcome | undefined;
  #end: () => void = () => undefined;
  #over: Promise<void> | undefined;

  /** Made for who asks: most operations end nothing. */
  get over(): Promise<void> {
    this.#over ??= new Promise((resolve) => {
      if (this.#outcome === undefined) this.#end = resolve;
      else resolve();
    });
    return this.#over;
  }

  get outcome(): StoreOutcome | undefined {
    return this.#outcome;
  }

  /** The first outcome stands. */
  end(outcome: StoreOutcome): void {
    this.#outcome ??= outcome;
    this.#end();
  }
}
