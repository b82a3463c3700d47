/** Lets two or more pieces of work take their steps in one order, each step after the one before has come to its end. */
export class Steps {
  readonly #order: string[];
  readonly #waiting = new Map<string, () => void>();
  readonly #finished = new Set<string>();
  #running: string | undefined;

  constructor(order: readonly string[]) {
    this.#order = [...order];
  }

  /** Ends the step of this piece of work, and resolves when its next one may begin. */
  async next(name: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.set(name, resolve);
      if (this.#running === name) this.#running = undefined;
      this.#go();
    });
  }

  /** The work has come to its end: steps that it did not need are left out. */
  finish(name: string): void {
    this.#finished.add(name);
    if (this.#running === name) this.#running = undefined;
    this.#go();
  }

  #go(): void {
    if (this.#running !== undefined) return;
    while (this.#order.length > 0 && this.#finished.has(this.#order[0] ?? '')) this.#order.shift();
    const [name = this.#waiting.keys().next().value] = this.#order;
    const proceed = name === undefined ? undefined : this.#waiting.get(name);
    if (name === undefined || !proceed) return;
    this.#order.shift();
    this.#waiting.delete(name);
    this.#running = name;
    proceed();
  }
}

/** Every order in which two pieces of work can take so many steps. */
export function interleavings<T extends string>(one: T, ofOne: number, other: T, ofOther: number): T[][] {
  if (ofOne === 0) return [Array<T>(ofOther).fill(other)];
  if (ofOther === 0) return [Array<T>(ofOne).fill(one)];
  return [
    ...interleavings(one, ofOne - 1, other, ofOther).map((order) => [one, ...order]),
    ...interleavings(one, ofOne, other, ofOther - 1).map((order) => [other, ...order]),
  ];
}
