import type { Operation } from '../received-requests.js';

/** A simulated failure of a request. The kinds say whether the operation is applied all the same. */
export type Fault =
  /** The connection is destroyed before the body is read. Not applied. */
  | { kind: 'outage' }
  /** Applied on arrival; the answer is held back for `ms` milliseconds. */
  | { kind: 'latency'; ms: number }
  /** Another status. Not applied. A body that is not a string is sent as JSON. */
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: unknown }
  /** Applied; then the connection is reset without an answer. */
  | { kind: 'reset-after-apply' }
  /** Applied; the headers come immediately and the body drips for `ms` milliseconds. */
  | { kind: 'slow-body'; ms: number }
  /** Applied; the whole length is promised and the connection destroyed half-way. */
  | { kind: 'cut-body' }
  /** Applied; the first half of the JSON, complete by its content length. */
  | { kind: 'malformed-body' }
  /** A substitute body (status 200, JSON, unless given). Applied only with `apply: true`; default false. */
  | { kind: 'body'; body: unknown; status?: number; contentType?: string; apply?: boolean }
  /** A redirect (302 unless given). Not applied. */
  | { kind: 'redirect'; location: string; status?: number };

/** Which requests meet the failure. */
export interface FaultScope {
  /** Default `any`, which includes unknown routes. The page and the demo routes never meet one. */
  operation?: Operation | 'any';
  /** How many requests meet it. Default: all. */
  times?: number;
}

/** A simulated failure, and the requests that meet it. */
export type FaultRule = Fault & FaultScope;

interface Entry {
  readonly rule: FaultRule;
  left: number;
}

/** The simulated failures. A request meets one at most: the oldest that fits. */
export class Faults {
  readonly #entries = new Set<Entry>();
  #first: FaultRule | undefined;

  /** Adds a failure. @returns a function that removes it, and may be called repeatedly */
  add(rule: FaultRule): () => void {
    const entry = { rule: { ...rule }, left: rule.times ?? Infinity };
    this.#entries.add(entry);
    return () => {
      this.#entries.delete(entry);
    };
  }

  /** Sets the failure that comes before all others, in place of the last one that was set here; `undefined` for none. */
  setFirst(rule: FaultRule | undefined): void {
    this.#first = rule;
  }

  /** Removes all that were added. */
  clear(): void {
    this.#entries.clear();
  }

  /** The failure of this request, which counts as one of its `times`. Called by the server. */
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
