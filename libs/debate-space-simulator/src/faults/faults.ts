import type { Operation } from '../received/operation.js';
import type { Fault, FaultRule } from './fault.js';

interface Entry {
  readonly rule: FaultRule;
  left: number;
}

/** The faults in force. A request meets one at most: the oldest that fits. */
export class Faults {
  readonly #entries = new Set<Entry>();

  /** Puts a fault in force. The function returned takes it back; calling it again does nothing. */
  add(rule: FaultRule): () => void {
    const entry = { rule: { ...rule }, left: rule.times ?? Infinity };
    this.#entries.add(entry);
    return () => {
      this.#entries.delete(entry);
    };
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The fault for a request, which uses it up by one. Called by the server. */
  take(operation: Operation): Fault | undefined {
    for (const entry of this.#entries) {
      const wanted = entry.rule.operation ?? 'any';
      if (entry.left <= 0 || (wanted !== 'any' && wanted !== operation)) continue;
      entry.left -= 1;
      if (entry.left <= 0) this.#entries.delete(entry);
      return entry.rule;
    }
    return undefined;
  }
}
