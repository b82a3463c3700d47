/** What an engine has for each family of keys. */
export class Families<T> {
  readonly #byName: ReadonlyMap<string, T>;

  constructor(names: readonly string[], make: (name: string) => T) {
    this.#byName = new Map(names.map((name) => [name, make(name)]));
  }

  /** @throws TypeError when the storage was opened without this family */
  get(name: string): T {
    const found = this.#byName.get(name);
    if (found === undefined) throw new TypeError('The storage was opened without the family of this key');
    return found;
  }

  /** Of a key, or of the bounds of a range. */
  of(key: string): T {
    return this.get(key.slice(0, Math.max(0, key.indexOf(':'))));
  }
}
