import type { Operation } from '../received/operation.js';
import type { Fault, FaultRule } from './fault.js';

interface Entry {
  readonly rule: FaultRule;
  left: number;
}

/** The faults in force. A request meets one at most: the oldest that fits. */
export class Faults {
  readonly #entries = new Set<Entry>();
  #first: FaultRule | undefined;

  /** Puts a fault in force. The function returned takes it back; calling it again does nothing. */
  add(rule: FaultRule): () => void {
    const entry = { rule: { ...rule }, left: rule.times ?? Infinity };
    this.#entries.add(entry);
    return () => {
      this.#entries.delete(entry);
    };
  }

  /** Puts a fault before all others, in place of the last one set here, until it is set again. Undefined: none. */
  setFirst(rule: FaultRule | undefined): void {
    this.#first = rule;
  }

  /** Takes back all that were added. */
  clear(): void {
    this.#entries.clear();
  }

  /** The fault for a request, which uses it up by one. Called by the server. */
  take(operation: Operation): Fault | undefined {
    if (this.#first && meets(this.#first, operation)) return this.#first;
    for (const entry of this.#entries) {
      if (entry.left <= 0 || !meets(entry.rule, operation)) continue;
      entry.left -= 1;
      if (entry.left <= 0) this.#entries.delete(entry);
      return entry.rule;
    }
    return undefined;
  }
}

function meets({ operation = 'any' }: FaultRule, requested: Operation): boolean {
  return operation === 'any' || operation === requested;
}
