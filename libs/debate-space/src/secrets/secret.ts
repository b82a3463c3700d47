import { inspect } from 'node:util';

/** Where a key comes from, asked whenever it is needed. */
export interface SecretSource {
  current(): Promise<Secret>;
}

/** A value that cannot be printed: `util.inspect`, `String()` and `JSON.stringify` all show `[secret]`. */
export class Secret implements SecretSource {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  /** The value itself. Call it where the value is sent or imported, and keep the result in no property. */
  reveal(): string {
    return this.#value;
  }

  /** It never changes. */
  current(): Promise<Secret> {
    return Promise.resolve(this);
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
