interface Entry<T> {
  readonly at: number;
  readonly item: T;
}

/** A binary heap: the earliest entry first. Entries are never removed from the middle: `first` drops outdated ones. */
export class DueHeap<T> {
  readonly #entries: Entry<T>[] = [];

  push(at: number, item: T): void {
    const entries = this.#entries;
    let n = entries.push({ at, item }) - 1;
    for (let up = (n - 1) >> 1; n > 0 && this.#at(up) > at; n = up, up = (n - 1) >> 1) this.#swap(n, up);
  }

  /** @param isCurrent whether this is still the moment of the item; an entry of which it is not is dropped */
  first(isCurrent: (item: T, at: number) => boolean): T | undefined {
    for (let entry = this.#entries[0]; entry; entry = this.#entries[0]) {
      if (isCurrent(entry.item, entry.at)) return entry.item;
      this.#dropFirst();
    }
    return undefined;
  }

  #dropFirst(): void {
    const last = this.#entries.pop();
    if (!last || this.#entries.length === 0) return;
    this.#entries[0] = last;
    for (let n = 0; ;) {
      const [left, right] = [2 * n + 1, 2 * n + 2];
      const down = this.#at(right) < this.#at(left) ? right : left;
      if (this.#at(down) >= this.#at(n)) return;
      this.#swap(n, down);
      n = down;
    }
  }

  #at(n: number): number {
    return this.#entries[n]?.at ?? Infinity;
  }

  #swap(one: number, other: number): void {
    const [first, second] = [this.#entries[one], this.#entries[other]];
    if (!first || !second) return;
    this.#entries[one] = second;
    this.#entries[other] = first;
  }
}
