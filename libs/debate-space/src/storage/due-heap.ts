interface Entry<T> {
  readonly at: number;
  /** Of two entries with the same moment, the one that came first is first. */
  readonly number: number;
  readonly item: T;
}

/** A binary heap: the earliest entry first. Entries are never removed from the middle: `first` drops outdated ones. */
export class DueHeap<T> {
  readonly #entries: Entry<T>[] = [];
  #count = 0;

  push(at: number, item: T): void {
    let n = this.#entries.push({ at, number: (this.#count += 1), item }) - 1;
    for (let up = (n - 1) >> 1; n > 0 && this.#isBefore(n, up); n = up, up = (n - 1) >> 1) this.#swap(n, up);
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
      const down = this.#isBefore(right, left) ? right : left;
      if (!this.#isBefore(down, n)) return;
      this.#swap(n, down);
      n = down;
    }
  }

  #isBefore(n: number, m: number): boolean {
    const [one, other] = [this.#entries[n], this.#entries[m]];
    if (!one || !other) return one !== undefined;
    return one.at < other.at || (one.at === other.at && one.number < other.number);
  }

  #swap(n: number, m: number): void {
    const [one, other] = [this.#entries[n], this.#entries[m]];
    if (!one || !other) return;
    this.#entries[n] = other;
    this.#entries[m] = one;
  }
}
